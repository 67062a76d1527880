import { datasetInfo, listModels, modelInfo } from '@huggingface/hub';
import * as v from 'valibot';
import { AmalgamError, errorReport } from '../errors';
import { type HubId, hubFile, parseDatasetId, parseHubId } from '../formats/hub-id';
import type { FamilyMember } from '../formats/model-family';
import { displayName } from '../formats/names';
import type { HubHit, HubQuery } from '../reports/models';
import { throwIfCanceled } from './cancellation';
import type { RequestSubject } from './http-error';
import { type HubRepo, listRepo, type RepoFacts, repoInfo } from './hub-file';
import { type Hub, hubFailure, hubFetch } from './hub-request';
import type { ModelFile, ModelFolder } from './model-folder';

/** What a listing that is too long asks for. */
const TOO_MANY = {
  model: 'This is not a model folder that can be merged. Choose another one.',
  /** Some are hundreds of thousands of files. */
  dataset: 'Download one file of it and open it from disk.',
};

/** A dataset opened on a hub, pinned to a commit. */
export interface HubDataset {
  /** `owner/name`. */
  readonly id: string;
  readonly commit: string;
  readonly files: readonly ModelFile[];
  readonly facts: RepoFacts;
}

/** A model opened on a hub, pinned to a commit. */
interface HubModel extends ModelFolder {
  readonly origin: { kind: 'hub'; repo: string; revision: string; commit: string };
  readonly facts: RepoFacts;
}

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const hitSchema = v.object({
  name: v.string(),
  downloads: v.optional(count, 0),
  likes: v.optional(count, 0),
  updatedAt: v.date(),
  gated: v.optional(v.union([v.literal(false), v.picklist(['auto', 'manual'])]), false),
  private: v.optional(v.boolean(), false),
  safetensors: v.optional(v.nullable(v.object({ total: count }))),
});

/**
 * Models with safetensors weights whose name contains the text, most downloaded first; with `derivedFrom` only the
 * adapters or fine-tunes that name this base in their model card.
 * @throws AmalgamError in words; `Canceled` when the signal fires.
 */
export async function searchModels(hub: Hub, query: HubQuery, signal?: AbortSignal): Promise<HubHit[]> {
  const subject: RequestSubject = { name: 'the list of models', host: new URL(hub.url).host };
  const derived = query.derivedFrom;
  const tags = ['safetensors', ...(derived ? [`base_model:${derived.kind}:${derived.base}`] : [])];
  const hits: HubHit[] = [];
  try {
    for await (const entry of listModels({
      search: { query: query.text.trim(), tags },
      sort: 'downloads',
      limit: Math.max(1, query.limit),
      additionalFields: ['safetensors'],
      hubUrl: hub.url,
      fetch: hubFetch(hub, subject, signal),
    })) {
      const hit = v.parse(hitSchema, entry);
      hits.push({
        id: hit.name,
        downloads: hit.downloads,
        likes: hit.likes,
        updatedAt: hit.updatedAt.toISOString(),
        gated: hit.gated,
        private: hit.private,
        ...(hit.safetensors ? { parameters: hit.safetensors.total } : {}),
      });
    }
  } catch (thrown) {
    throw await hubFailure(thrown, subject);
  }
  return hits;
}

/**
 * Opens `owner/name`: resolves the revision (default branch when absent) to its commit and lists every file there
 * with size and checksum. No file is read. Everything read later is read at this commit.
 * @throws NotFound, Unauthorized, Gated, HubError and the rest of the network's failures, in words.
 */
export async function openHubModel(
  hub: Hub,
  id: string,
  revision?: string,
  signal?: AbortSignal,
): Promise<HubModel> {
  const asked = parseHubId(revision === undefined ? id : `${id}@${revision}`, hub.url);
  const { file, ...named } = hubFile(asked.id);
  const opened = await openRepo(hub, 'model', { ...asked, id: named.repo }, signal);
  const { id: repo, commit, files, facts, family } = opened;
  return {
    path: file === undefined ? repo : `${repo}/${file}`,
    origin: { kind: 'hub', repo, revision: asked.revision ?? 'main', commit },
    files: file === undefined ? files : aroundFile(files, file, repo),
    ...{ family, facts },
  };
}

/** A GGUF file with its other parts, and what lies beside it but for other GGUF files. @throws NotFound where it is not there */
function aroundFile(files: readonly ModelFile[], file: string, repo: string): ModelFile[] {
  if (!files.some(({ path }) => path === file)) {
    throw new AmalgamError(
      'NotFound',
      `${repo} has no file ${displayName(file)} at its top.`,
      'Choose one of the files that its page lists.',
    );
  }
  const model = (path: string) => path.replace(/(?:-\d{5}-of-\d{5})?\.gguf$/i, '');
  return files.filter(({ path }) => !/\.gguf$/i.test(path) || model(path) === model(file));
}

/**
 * Opens the dataset `owner/name[@revision]`, or that of a page's address, as a model is opened.
 * @throws UnsafeName, LimitExceeded, and what opening a model throws
 */
export async function openHubDataset(hub: Hub, idOrUrl: string, signal?: AbortSignal): Promise<HubDataset> {
  return openRepo(hub, 'dataset', parseDatasetId(idOrUrl, hub.url), signal);
}

async function openRepo(
  hub: Hub,
  type: 'model' | 'dataset',
  { id, revision }: HubId,
  signal: AbortSignal | undefined,
): Promise<HubDataset & { family: FamilyMember[] }> {
  const { subject } = repoOf(hub, type, id);
  const shared = { hubUrl: hub.url, fetch: hubFetch(hub, subject, signal) };
  const asked = {
    name: id,
    ...(revision === undefined ? {} : { revision }),
    additionalFields: ['sha' as const, 'tags' as const, ...(type === 'model' ? ['cardData' as const] : [])],
    ...shared,
  };
  try {
    const said = await (type === 'model' ? modelInfo(asked) : datasetInfo(asked));
    const { name, commit, facts, member } = repoInfo(said);
    // The Hub answers for a renamed repository under its new name.
    const repo = repoOf(hub, type, parseHubId(name, hub.url).id);
    const [files, family] = await Promise.all([
      listRepo(hub, repo, type, commit, shared, TOO_MANY[type]),
      type === 'model' ? readFamily(hub, { ...member, id: repo.id }, signal) : [],
    ]);
    return { id: repo.id, commit, files, facts, family };
  } catch (thrown) {
    throw await hubFailure(thrown, subject);
  }
}

function repoOf(hub: Hub, type: 'model' | 'dataset', id: string): HubRepo {
  const [page, name] =
    type === 'model' ? [`${hub.url}/${id}`, id] : [`${hub.url}/datasets/${id}`, `the dataset ${id}`];
  return { id, page, subject: { name, host: new URL(hub.url).host, page } };
}

// The family of a model on a hub: the models that it was made from, and those that these were.

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
async function readFamily(hub: Hub, own: FamilyMember, signal?: AbortSignal): Promise<FamilyMember[]> {
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
  const shared = known.get(id);
  const asked = shared ?? askMember(hub, id, signal);
  known.set(id, asked);
  const member = await asked;
  if (member.unread !== undefined && known.get(id) === asked) known.delete(id);
  throwIfCanceled(signal);
  // who asked first may have been canceled
  return shared && member.unread === 'silent' ? memberOf(hub, id, signal) : member;
}

async function askMember(hub: Hub, id: string, signal?: AbortSignal): Promise<FamilyMember> {
  const subject = { name: id, host: new URL(hub.url).host, page: `${hub.url}/${id}` };
  try {
    const said = await modelInfo({
      ...{ name: id, hubUrl: hub.url, additionalFields: ['sha', 'tags', 'cardData'] },
      fetch: hubFetch(
        hub,
        subject,
        AbortSignal.any([AbortSignal.timeout(PATIENCE_MS), ...(signal ? [signal] : [])]),
      ),
    });
    // a repository that was renamed answers under its new name
    return { ...repoInfo(said).member, id };
  } catch (thrown) {
    const { code } = errorReport(await hubFailure(thrown, subject));
    const isAbsent = code === 'NotFound' || code === 'Unauthorized' || code === 'Gated';
    return { id, parents: [], unread: isAbsent ? 'absent' : 'silent' };
  }
}
