/** Dataset repos of a hub: the files they have, pinned to a commit. */
import { datasetInfo } from '@huggingface/hub';
import { parseDatasetId } from '../formats/hub-id';
import { type HubRepo, listRepo, repoInfo } from './hub-file';
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

/** Some datasets are hundreds of thousands of files. */
const ONE_FILE = 'Download one file of it and open it from disk.';

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
    const { name, commit, license } = repoInfo(
      await datasetInfo({
        name: asked.id,
        ...(asked.revision === undefined ? {} : { revision: asked.revision }),
        additionalFields: ['sha', 'tags'],
        ...shared,
      }),
    );
    const repo = repoOf(hub, parseDatasetId(name, hub.url).id);
    const files = await listRepo(hub, repo, 'dataset', commit, shared, ONE_FILE);
    return { id: repo.id, commit, files, ...(license === undefined ? {} : { license }) };
  } catch (thrown) {
    throw hubFailure(thrown, subject);
  }
}

function repoOf(hub: Hub, id: string): HubRepo {
  const page = `${hub.url}/datasets/${id}`;
  return { id, page, subject: { name: `the dataset ${id}`, host: new URL(hub.url).host, page } };
}
