/** The files of a repository on a hub, as its listing describes them. */
import { listFiles } from '@huggingface/hub';
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import type { RequestSubject } from './http-error';
import { type Hub, hubHeaders } from './hub-request';
import { checkListedPath } from './listed-path';
import type { ModelFile } from './model-folder';
import { rangeSource } from './range-source';

/** A repository: its id, its page (below which `resolve/<commit>/<path>` lies), and what messages call it. */
export interface HubRepo {
  id: string;
  page: string;
  subject: RequestSubject & { page: string };
}

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const fileSchema = v.object({
  path: v.string(),
  size: count,
  oid: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)),
  lfs: v.optional(v.object({ oid: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)), size: count })),
});

const infoSchema = v.object({
  name: v.string(),
  sha: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)),
  tags: v.optional(v.array(v.string()), []),
});

/** What a hub says of a repository: its name of today, the commit, and the license where it has one. */
export function repoInfo(said: unknown): { name: string; commit: string; license?: string } {
  const { name, sha, tags } = v.parse(infoSchema, said);
  const license = tags.find((tag) => tag.startsWith('license:'))?.slice('license:'.length);
  return { name, commit: sha, ...(license === undefined ? {} : { license }) };
}

/** More are hardly a model that can be merged, nor a dataset that can be gone through. */
const MOST_FILES = 20_000;

/** How the hub's client asks about a repository. */
interface Asking {
  hubUrl: string;
  fetch: typeof fetch;
}

/**
 * Every file of a repository at a commit, none of them read.
 * @param tooMany what to do instead where there are too many
 * @throws UnsafePath, LimitExceeded, and what the hub's client throws
 */
export async function listRepo(
  hub: Hub,
  repo: HubRepo,
  type: 'model' | 'dataset',
  commit: string,
  asking: Asking,
  tooMany: string,
): Promise<ModelFile[]> {
  const files: ModelFile[] = [];
  const listing = { repo: { type, name: repo.id }, revision: commit, recursive: true, ...asking };
  for await (const entry of listFiles(listing)) {
    if (entry.type !== 'file') continue;
    if (files.length === MOST_FILES) {
      const title = type === 'dataset' ? `The dataset ${repo.id}` : repo.id;
      throw new AmalgamError('LimitExceeded', `${title} has more than ${MOST_FILES} files.`, tooMany);
    }
    files.push(hubFile(hub, repo, commit, entry));
  }
  return files;
}

/** @throws UnsafePath, and valibot's error for an entry of another shape */
function hubFile(hub: Hub, repo: HubRepo, commit: string, entry: unknown): ModelFile {
  const { path, size, oid, lfs } = v.parse(fileSchema, entry);
  checkListedPath(path, repo.id);
  const url = `${repo.page}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`;
  const byteLength = lfs?.size ?? size;
  return {
    path,
    byteLength,
    ...(lfs ? { sha256: lfs.oid } : { gitSha1: oid }),
    open: () =>
      rangeSource(
        {
          url,
          byteLength,
          subject: { ...repo.subject, name: `${repo.id}: ${path}` },
          headers: () => hubHeaders(hub, url),
        },
        hub,
      ),
  };
}
