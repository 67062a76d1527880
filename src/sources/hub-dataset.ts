/** Dataset repos of a hub: the files they have, pinned to a commit. */
import { datasetInfo, listFiles } from '@huggingface/hub';
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import { parseDatasetId } from '../formats/hub-id';
import { type HubRepo, hubFile } from './hub-file';
import { type Hub, hubFailure, hubFetch } from './hub-request';
import type { ModelFile } from './model-folder';

/** A dataset opened on a hub, pinned to a commit. */
export interface HubDataset {
  /** `owner/name`. */
  readonly id: string;
  readonly commit: string;
  readonly files: readonly ModelFile[];
  readonly license?: string;
}

/** Some datasets are hundreds of thousands of files; a person picks one by its path. */
const MOST_FILES = 20_000;

const infoSchema = v.object({
  name: v.string(),
  sha: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)),
  tags: v.optional(v.array(v.string()), []),
});

/**
 * Opens `owner/name[@revision]` or the address of a dataset's page: resolves the revision to its commit and lists every
 * file there. No file is read. Everything read later is read at this commit.
 * @throws UnsafeName, NotFound, Unauthorized, Gated, LimitExceeded, HubError and the rest of the network's failures
 */
export async function openHubDataset(hub: Hub, idOrUrl: string, signal?: AbortSignal): Promise<HubDataset> {
  const asked = parseDatasetId(idOrUrl, hub.url);
  const subject = repoOf(hub, asked.id).subject;
  const shared = { hubUrl: hub.url, fetch: hubFetch(hub, subject, signal) };
  try {
    const info = v.parse(
      infoSchema,
      await datasetInfo({
        name: asked.id,
        ...(asked.revision === undefined ? {} : { revision: asked.revision }),
        additionalFields: ['sha', 'tags'],
        ...shared,
      }),
    );
    const repo = repoOf(hub, parseDatasetId(info.name, hub.url).id);
    const files: ModelFile[] = [];
    const listing = { repo: { type: 'dataset' as const, name: repo.id }, revision: info.sha };
    for await (const entry of listFiles({ ...listing, recursive: true, ...shared })) {
      if (entry.type !== 'file') continue;
      if (files.length === MOST_FILES) throw tooManyFiles(repo.id);
      files.push(hubFile(hub, repo, info.sha, entry));
    }
    const license = info.tags.find((tag) => tag.startsWith('license:'))?.slice('license:'.length);
    return { id: repo.id, commit: info.sha, files, ...(license === undefined ? {} : { license }) };
  } catch (thrown) {
    throw hubFailure(thrown, subject);
  }
}

function repoOf(hub: Hub, id: string): HubRepo {
  const page = `${hub.url}/datasets/${id}`;
  return { id, page, subject: { name: `the dataset ${id}`, host: new URL(hub.url).host, page } };
}

function tooManyFiles(id: string): AmalgamError {
  return new AmalgamError(
    'LimitExceeded',
    `The dataset ${id} has more than ${MOST_FILES} files.`,
    'Download one file of it and open it from disk.',
  );
}
