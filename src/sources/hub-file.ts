/** One file of a repository on a hub, as its listing describes it. */
import * as v from 'valibot';
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

/** @throws UnsafePath, and valibot's error for an entry of another shape */
export function hubFile(hub: Hub, repo: HubRepo, commit: string, entry: unknown): ModelFile {
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
