/** The family of a model on a hub: the models that it was made from, and those that these were. */
import { modelInfo } from '@huggingface/hub';
import { errorReport } from '../errors';
import type { FamilyMember } from '../formats/model-family';
import { repoInfo } from './hub-file';
import { type Hub, hubFailure, hubFetch } from './hub-request';

/** More are hardly looked at. */
const MOST_MEMBERS = 60;
/** A hub that is slow to answer does not hold up the model that is opened. */
const PATIENCE_MS = 10_000;

/** Answers of each hub, which many models have in common. */
const answers = new WeakMap<Hub, Map<string, Promise<FamilyMember>>>();

/**
 * The member itself, then its ancestors, the nearest first, each once. One whose page cannot be read says so.
 * @throws Canceled
 */
export async function readFamily(hub: Hub, own: FamilyMember, signal?: AbortSignal): Promise<FamilyMember[]> {
  const family = [own];
  const seen = new Set([own.id]);
  for (let generation = [own]; generation.length > 0; ) {
    const parents = [...new Set(generation.flatMap(({ parents }) => parents))].filter((id) => !seen.has(id));
    const asked = parents.slice(0, MOST_MEMBERS - family.length);
    for (const id of asked) seen.add(id);
    generation = await Promise.all(asked.map((id) => memberOf(hub, id, signal)));
    family.push(...generation);
  }
  return family;
}

async function memberOf(hub: Hub, id: string, signal?: AbortSignal): Promise<FamilyMember> {
  const known = answers.get(hub) ?? new Map<string, Promise<FamilyMember>>();
  answers.set(hub, known);
  const asked = known.get(id) ?? askMember(hub, id);
  known.set(id, asked);
  const member = await asked;
  if (member.unread !== undefined) known.delete(id);
  signal?.throwIfAborted();
  return member;
}

async function askMember(hub: Hub, id: string): Promise<FamilyMember> {
  const subject = { name: id, host: new URL(hub.url).host, page: `${hub.url}/${id}` };
  try {
    const said = await modelInfo({
      ...{ name: id, hubUrl: hub.url, additionalFields: ['sha', 'tags', 'cardData'] },
      fetch: hubFetch(hub, subject, AbortSignal.timeout(PATIENCE_MS)),
    });
    // a repository that was renamed answers under its new name
    return { ...repoInfo(said).member, id };
  } catch (thrown) {
    const { code } = errorReport(await hubFailure(thrown, subject));
    const isAbsent = code === 'NotFound' || code === 'Unauthorized' || code === 'Gated';
    return { id, parents: [], unread: isAbsent ? 'absent' : 'silent' };
  }
}
