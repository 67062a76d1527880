/** The files of a repository on a hub, as its listing describes them. */
import { listFiles } from '@huggingface/hub';
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import type { FamilyMember, Relation } from '../formats/model-family';
import { type ByteSink, type ByteSource, checkByteRange } from './byte-source';
import type { RequestSubject } from './http-error';
import { type Hub, hubHeaders } from './hub-request';
import type { ModelFile } from './model-folder';
import { fetchOk, Retryable, readBody, retrying, type Transfer } from './transfer';

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
  gated: v.optional(v.union([v.boolean(), v.string()]), false),
  cardData: v.fallback(v.optional(v.record(v.string(), v.unknown())), {}),
});

/** What the page of a repository says of it. */
export interface RepoFacts {
  /** E.g. `apache-2.0`. */
  license?: string;
  /** Of a copy in fewer bits: the model that it was made from. */
  copyOf?: string;
  /** Its author decides who may read it. */
  gated?: true;
}

/** Repository as the hub describes it: its current name, the commit, what its page says, and its place in a family. */
export function repoInfo(said: unknown): {
  name: string;
  commit: string;
  facts: RepoFacts;
  member: FamilyMember;
} {
  const { name, sha, tags, gated, cardData = {} } = v.parse(infoSchema, said);
  const tagged = (prefix: string) => tags.find((tag) => tag.startsWith(prefix))?.slice(prefix.length);
  const license = tagged('license:');
  const copyOf = tagged('base_model:quantized:');
  const facts = {
    ...(license === undefined ? {} : { license }),
    ...(copyOf === undefined ? {} : { copyOf }),
    ...(gated === false ? {} : { gated: true as const }),
  };
  const parents = new Set(
    tags.flatMap((tag) => /^base_model:(?:\w+:)?([\w.-]+\/[\w.-]+)$/.exec(tag)?.[1] ?? []),
  );
  parents.delete(name);
  const relation = RELATIONS.find((one) => tags.some((tag) => tag.startsWith(`base_model:${one}:`)));
  const text = (key: string) => (typeof cardData[key] === 'string' ? cardData[key] : undefined);
  const [licenseName, licenseLink] = [text('license_name'), text('license_link')];
  const member = {
    ...{ id: name, parents: [...parents] },
    ...(relation && { relation }),
    ...(license !== undefined && { license }),
    ...(licenseName !== undefined && { licenseName }),
    ...(licenseLink !== undefined && { licenseLink }),
  };
  return { name, commit: sha, facts, member };
}

const RELATIONS: readonly Relation[] = ['merge', 'adapter', 'finetune', 'quantized'];

/** More are hardly a model that can be merged, nor a dataset that can be gone through. */
const MOST_FILES = 20_000;

/** How the hub's client asks about a repository. */
interface Asking {
  hubUrl: string;
  fetch: typeof fetch;
}

/**
 * Every file of a repository at a commit; reads none of them.
 * @param tooMany next step in the message where there are too many
 * @throws UnsafePath, LimitExceeded, and errors of the hub's client
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
          subject: { ...repo.subject, name: `${repo.id}: ${path}`, listed: true },
          headers: () => hubHeaders(hub, url),
        },
        hub,
      ),
  };
}

/**
 * Checks a path in a server's listing of a folder. Folders hold files of any name, most of which nobody reads, so
 * only a path that would lead out of the folder is refused; names that come from inside a file, and names that are
 * written, obey the stricter rules of `formats/names`.
 * @throws UnsafePath for an empty, `.` or `..` part, a backslash or a NUL.
 */
function checkListedPath(path: string, folder: string): void {
  const inside = path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (inside && !path.includes('\\') && !path.includes('\0')) return;
  throw new AmalgamError(
    'UnsafePath',
    `The listing of ${folder} has a file called ${JSON.stringify(path)}, which is not a path inside it.`,
    'Use another copy of the model.',
  );
}

/** A file behind a URL, as its listing describes it. */
interface RangeTarget {
  url: string;
  byteLength: number;
  subject: RequestSubject;
  /** Headers for each request, asked for every time: a token may be given or renewed between two pieces. */
  headers?: () => Record<string, string>;
}

/**
 * A source over an HTTP URL; each read or stream is one Range request (more when the connection is cut: it goes on at
 * the byte where it was cut). An answer is accepted only as status 206 with `Content-Range` exactly as asked and
 * exactly that many bytes; the whole file may also come as a plain 200 of exactly its length.
 * @throws RangeIgnored when the server sends the whole file for a part, TransferInvalid when what it sends is not
 *   what was asked, Offline, RateLimited, HubError when the tries are used up, Unauthorized, Gated and NotFound at once.
 */
export function rangeSource(target: RangeTarget, transfer: Transfer = {}): ByteSource {
  const { byteLength, subject } = target;
  return {
    byteLength,
    async read(begin, end, signal) {
      checkByteRange(begin, end, byteLength, subject.name);
      const bytes = new Uint8Array(end - begin);
      let got = 0;
      const sink: ByteSink = {
        take(chunk) {
          bytes.set(chunk, got);
          got += chunk.length;
        },
        goBack() {
          got = 0;
          return begin;
        },
      };
      await streamRange(target, transfer, begin, end, sink, signal);
      return bytes;
    },
    async stream(begin, end, sink, signal) {
      checkByteRange(begin, end, byteLength, subject.name);
      await streamRange(target, transfer, begin, end, sink, signal);
    },
  };
}

async function streamRange(
  target: RangeTarget,
  transfer: Transfer,
  begin: number,
  end: number,
  sink: ByteSink,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { subject } = target;
  let taken = begin;
  if (begin === end) return;
  await retrying(
    async (attemptSignal, received) => {
      const headers = { ...target.headers?.(), Range: `bytes=${taken}-${end - 1}` };
      const response = await fetchOk(target.url, { headers }, subject, transfer, attemptSignal);
      try {
        checkAnswer(response, taken, end, target);
        let arrived = taken;
        // Hold back the last bytes until the body has ended, so that the sink never gets all of a body that is too
        // long.
        let last: Uint8Array<ArrayBuffer> | undefined;
        await readBody(response, (chunk) => {
          arrived += chunk.length;
          if (arrived > end) throw wrong(subject, 'is longer than asked for');
          received(chunk.length);
          if (arrived < end) {
            sink.take(chunk);
            taken = arrived;
          } else if (chunk.length > 0) last = chunk;
        });
        if (!last) throw wrong(subject, `ended ${end - arrived} bytes early`);
        sink.take(last);
      } catch (thrown) {
        // Bytes before a cut are good; those of a wrong answer are dropped as far as the sink can go back.
        if (thrown instanceof Retryable) taken = sink.goBack();
        // Ends the transfer; on a stream that has already failed there is nothing left to end.
        await response.body?.cancel().catch(() => undefined);
        throw thrown;
      }
    },
    subject,
    transfer,
    signal,
  );
}

/** @throws Retryable unless the response is exactly bytes `[begin, end)` of a file of the listed length. */
function checkAnswer(response: Response, begin: number, end: number, target: RangeTarget): void {
  const { byteLength, subject, url } = target;
  if (response.status === 200) {
    const isPage = response.headers.get('Content-Type')?.includes('text/html') && !/\.html?$/.test(url);
    if (isPage) throw wrong(subject, 'is a web page, as a network with a sign-in page sends it');
    if (begin === 0 && end === byteLength) return;
    const final = new AmalgamError(
      'RangeIgnored',
      `${subject.host} sent all of ${subject.name} where a part was asked for.`,
      'This server cannot send parts of files. Use another hub, or download the model and open it from disk.',
    );
    throw new Retryable('content', final);
  }
  if (response.status !== 206) throw wrong(subject, `came with status ${response.status}`);
  const range = response.headers.get('Content-Range');
  const asked = `bytes ${begin}-${end - 1}/${byteLength}`;
  if (range !== asked) throw wrong(subject, `came as "${range ?? 'no range'}" instead of "${asked}"`);
}

function wrong(subject: RequestSubject, what: string): Retryable {
  const final = new AmalgamError(
    'TransferInvalid',
    `What ${subject.host} sent for ${subject.name} ${what}.`,
    'Start again. If it happens again, something between you and the server alters the file: try another network.',
  );
  return new Retryable('content', final);
}
