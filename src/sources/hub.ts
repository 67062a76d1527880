import { listModels, modelInfo } from '@huggingface/hub';
import * as v from 'valibot';
import { parseHubId } from '../formats/hub-id';
import type { HubHit, HubQuery } from '../reports/models';
import type { RequestSubject } from './http-error';
import { type HubRepo, listRepo, repoInfo } from './hub-file';
import { type Hub, hubFailure, hubFetch } from './hub-request';
import type { ModelFolder } from './model-folder';

/** A model opened on a hub, pinned to a commit. */
interface HubModel extends ModelFolder {
  readonly origin: { kind: 'hub'; repo: string; revision: string; commit: string };
  /** The license the model card names, e.g. `apache-2.0`. */
  readonly license?: string;
}

const NOT_A_MODEL = 'This is not a model folder that can be merged. Choose another one.';

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
    throw hubFailure(thrown, subject);
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
  const { subject } = repoOf(hub, asked.id);
  const shared = { hubUrl: hub.url, fetch: hubFetch(hub, subject, signal) };
  try {
    const { name, commit, license } = repoInfo(
      await modelInfo({
        name: asked.id,
        ...(asked.revision === undefined ? {} : { revision: asked.revision }),
        additionalFields: ['sha', 'tags'],
        ...shared,
      }),
    );
    // The Hub answers for a renamed model under its new name.
    const repo = repoOf(hub, parseHubId(name, hub.url).id);
    const files = await listRepo(hub, repo, 'model', commit, shared, NOT_A_MODEL);
    return {
      path: asked.id,
      origin: { kind: 'hub', repo: repo.id, revision: asked.revision ?? 'main', commit },
      files,
      ...(license === undefined ? {} : { license }),
    };
  } catch (thrown) {
    throw hubFailure(thrown, subject);
  }
}

function repoOf(hub: Hub, id: string): HubRepo {
  const page = `${hub.url}/${id}`;
  return { id, page, subject: { name: id, host: new URL(hub.url).host, page } };
}
