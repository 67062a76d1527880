/**
 * Files to a model repository on a hub, as one commit, by `commitIter` of `@huggingface/hub`: its `commit` with the progress
 * of hashing. Its `uploadFilesWithProgress` is not taken: it sends with a `fetch` of its own, which gives up at the first
 * lost connection (a push would not be resumed within its file), sends no word on what the page's policy has blocked, and
 * follows the hub to any server. Not taken either: Xet, whose servers the policy of the page would have to name, and hashing
 * in workers made of text, which that policy forbids.
 */
import { commitIter, createRepo as createOnHub, HubApiError, whoAmI } from '@huggingface/hub';
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import { isRepoId } from '../formats/hub-id';
import { displayName } from '../formats/names';
import type { HubAccount, PushTarget } from '../reports/push';
import { canceled, throwIfCanceled } from './cancellation';
import type { RequestSubject } from './http-error';
import { openHubModel } from './hub';
import { type Hub, hubFailure, hubFetch, notKnown } from './hub-request';
import { Retryable, retrying, tokenPlace } from './transfer';

export interface UploadFile {
  path: string;
  content: Blob;
}

export interface Upload {
  repo: string;
  files: readonly UploadFile[];
  /** Title of the commit. */
  summary: string;
  /** The commit that `main` was at when it was looked at: another one in between ends the upload. */
  parent: string;
}

export interface UploadMeter {
  /** Called with the bytes to hash, then, for every hundred large files, with those to send, which the hub has not yet. */
  begin(phase: 'hashing' | 'sending', bytes: number): void;
  advance(bytes: number, path: string): void;
  committing(): void;
}

/** A repository before anything is sent. */
export type RepoState = Omit<PushTarget, 'taken'>;

interface PutAnswer {
  status: number;
  /** Entity tag of what was stored, as the server quotes it. */
  etag: string | null;
}

/**
 * Sends a blob, which the browser reads from disk as it goes; no credentials or headers are added.
 * @param onSent called with the bytes sent since the last call
 * @throws Error when the connection fails or the signal fires
 */
export type PutBlob = (
  url: string,
  content: Blob,
  signal: AbortSignal,
  onSent: (bytes: number) => void,
) => Promise<PutAnswer>;

const batchSchema = v.object({
  objects: v.array(
    v.object({ size: v.number(), actions: v.optional(v.object({ upload: v.optional(v.unknown()) })) }),
  ),
});
const cardSchema = v.object({ errors: v.optional(v.array(v.object({ message: v.string() })), []) });

/** @throws Unauthorized without a token, or with one the hub does not know */
export async function hubAccount(hub: Hub, signal?: AbortSignal): Promise<HubAccount> {
  const subject: RequestSubject = { name: 'your account', host: new URL(hub.url).host };
  if (!hub.token) throw noToken(subject, hub);
  try {
    const found = await whoAmI({
      accessToken: hub.token,
      hubUrl: hub.url,
      fetch: hubFetch(hub, subject, signal),
    });
    return {
      name: found.name,
      organizations: found.type === 'user' ? found.orgs.map((org) => org.name) : [],
      mayWrite: hub.mayWrite ?? found.auth.accessToken?.role !== 'read',
    };
  } catch (thrown) {
    // the library itself refuses what cannot be a token
    if (thrown instanceof TypeError) throw noToken(subject, hub, thrown);
    throw await hubFailure(thrown, subject);
  }
}

/** The current state of the repository. @throws UnsafeName unless it is `owner/name` */
export async function pushTarget(hub: Hub, repo: string, signal?: AbortSignal): Promise<RepoState> {
  if (!isRepoId(repo) || !repo.includes('/')) {
    throw new AmalgamError(
      'UnsafeName',
      `“${displayName(repo)}” is not the name of a repository.`,
      'Write owner/name: letters, digits, dots, dashes and underscores.',
    );
  }
  const page = `${hub.url}/${repo}`;
  try {
    const { origin, files } = await openHubModel(hub, repo, undefined, signal);
    return { repo, page, exists: true, commit: origin.commit, files: files.map((f) => f.path) };
  } catch (thrown) {
    // Only with a valid token does 404 mean that there is no repository.
    if (!hub.token || !(thrown instanceof AmalgamError) || thrown.code !== 'NotFound') throw thrown;
    return { repo, page, exists: false, commit: null, files: [] };
  }
}

/**
 * Creates a model repository; false where one of that name was there already.
 * @throws Unauthorized when the token may not
 */
export async function createRepo(
  hub: Hub,
  repo: string,
  isPrivate: boolean,
  signal?: AbortSignal,
): Promise<boolean> {
  const subject = subjectOf(hub, repo);
  try {
    await createOnHub({
      repo: { type: 'model', name: repo },
      visibility: isPrivate ? 'private' : 'public',
      accessToken: hub.token ?? '',
      hubUrl: hub.url,
      fetch: hubFetch(hub, subject, signal, [409]),
    });
    return true;
  } catch (thrown) {
    if (thrown instanceof HubApiError && thrown.statusCode === 409) return false;
    throw await hubFailure(thrown, subject);
  }
}

/**
 * Asks the hub whether it will take the metadata of a model card: else it is refused with the commit, after every byte was
 * sent (huggingface_hub, `hf_api.py`: `_validate_yaml`).
 * @throws ConfigInvalid with what is wrong
 */
export async function validateCard(
  hub: Hub,
  repo: string,
  readme: string,
  signal?: AbortSignal,
): Promise<void> {
  const subject = subjectOf(hub, repo);
  // the hub lacks this check
  const response = await hubFetch(
    hub,
    subject,
    signal,
    [400, 404],
  )(`${hub.url}/api/validate-yaml`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ repoType: 'model', content: readme }),
  });
  const { errors } = await response.json().then(
    (said: unknown) => v.parse(cardSchema, said),
    async (thrown: unknown) => {
      if (response.status === 404) return { errors: [] };
      throw await hubFailure(thrown, subject);
    },
  );
  if (errors.length === 0) return;
  throw new AmalgamError(
    'ConfigInvalid',
    `The hub refuses the metadata of README.md: ${errors.map(({ message }) => displayName(message, 300)).join('; ')}`,
    'Change the block between the --- lines of README.md, and push again. Nothing was sent.',
  );
}

/**
 * Sends the files and commits them on `main`. Nothing of it can be seen in the repository before the commit; what the hub
 * has already of an earlier push is not sent again.
 * @param put how bytes go to the storage
 * @returns the commit, and the paths whose bytes went to the storage
 * @throws Canceled, FileChanged when the repository moved on, and refusals in words
 */
export async function uploadFiles(
  hub: Hub,
  { repo, files, summary, parent }: Upload,
  meter: UploadMeter,
  signal: AbortSignal,
  put: PutBlob = putBlob,
): Promise<{ commit: string; sent: ReadonlySet<string> }> {
  const subject = subjectOf(hub, repo);
  const sizes = new Map(files.map(({ path, content }) => [path, content.size]));
  const sent = new Set<string>();
  let isHashing = false;
  let isCommitting = false;
  const sum = (bytes: Iterable<number>) => [...bytes].reduce((a, b) => a + b, 0);
  const post = hubFetch(hub, subject, signal);
  let fail = (_: unknown) => {};
  // the library loses an error that comes while a step of its progress waits to be read, and then never ends
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  signal.addEventListener('abort', () => fail(canceled()), { once: true });
  const send = async (url: string, init: RequestInit & { progressHint?: { path: string } }) => {
    if (init.method === 'PUT') {
      const path = init.progressHint!.path;
      const advance = (bytes: number) => meter.advance(bytes, path);
      const etag = await sendPiece(hub, url, init.body as Blob, path, subject, signal, put, advance);
      sent.add(path);
      return new Response(null, { headers: etag === null ? {} : { ETag: etag } });
    }
    const response = await post(url, init);
    if (url.endsWith('/objects/batch')) {
      const { objects } = v.parse(batchSchema, await response.clone().json());
      const missing = objects.filter(({ actions }) => actions?.upload);
      isHashing = false;
      meter.begin('sending', sum(missing.map(({ size }) => size)));
    }
    return response;
  };
  const steps = commitIter({
    repo: { type: 'model', name: repo },
    title: summary,
    parentCommit: parent,
    operations: files.map((file) => ({ operation: 'addOrUpdate', ...file })),
    hubUrl: hub.url,
    useXet: false,
    abortSignal: signal,
    fetch: async (input, init) => {
      try {
        return await send(String(input), init ?? {});
      } catch (thrown) {
        fail(thrown);
        throw thrown;
      }
    },
  });
  const hashed = new Map<string, number>();
  // read to its end also when a failure came first: an unhandled rejection ends a process
  const follow = async () => {
    for (;;) {
      const step = await steps.next();
      if (step.done) return { commit: v.parse(v.string(), step.value?.commit.oid), sent };
      const { value } = step;
      if (value.event === 'phase' && value.phase === 'committing') {
        isCommitting = true;
        meter.committing();
      }
      if (value.event !== 'fileProgress' || value.state !== 'hashing') continue;
      if (!isHashing) meter.begin('hashing', sum(sizes.values()) - sum(hashed.values()));
      isHashing = true;
      const bytes = value.progress * sizes.get(value.path)!;
      meter.advance(bytes - (hashed.get(value.path) ?? 0), value.path);
      hashed.set(value.path, bytes);
    }
  };
  try {
    return await Promise.race([follow(), failed]);
  } catch (thrown) {
    throwIfCanceled(signal);
    throw isCommitting ? notKnown(thrown, subject) : await hubFailure(thrown, subject);
  }
}

/** One piece to the storage; tried again when the connection is lost. The address itself is the permission. */
async function sendPiece(
  hub: Hub,
  url: string,
  piece: Blob,
  path: string,
  subject: RequestSubject,
  signal: AbortSignal,
  put: PutBlob,
  advance: (bytes: number) => void,
): Promise<string | null> {
  const { host } = new URL(url);
  return retrying(
    async (attemptSignal, received) => {
      let sent = 0;
      const answer = await put(url, piece, attemptSignal, (bytes) => {
        sent += bytes;
        received(bytes);
        advance(bytes);
      }).catch((cause: unknown) => {
        advance(-sent);
        if (blocked.has(new URL(url).origin)) throw policyBlocks(host);
        const message = `The connection to ${host} was lost while ${path} was sent.`;
        const hint = 'Check the connection and push again: files that arrived are not sent twice.';
        throw new Retryable('connection', new AmalgamError('Offline', message, hint, { cause }));
      });
      if (answer.status >= 200 && answer.status < 300) return answer.etag;
      advance(-sent);
      const error = new AmalgamError(
        'HubError',
        `${host} refused ${path} with status ${answer.status}.`,
        storeHint(answer.status),
      );
      // S3 answers 400 where a connection stood still for too long
      const passing = answer.status >= 500 || [400, 408, 429].includes(answer.status);
      throw passing ? new Retryable('server', error) : error;
    },
    subject,
    hub,
    signal,
  );
}

function subjectOf(hub: Hub, repo: string): RequestSubject {
  return { name: repo, host: new URL(hub.url).host, page: `${hub.url}/${repo}`, writes: true };
}

function noToken(subject: RequestSubject, hub: Hub, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'Unauthorized',
    `Pushing to ${subject.host} needs an access token that begins with hf_.`,
    `Create one with write permission in your account settings there, and give it${tokenPlace(hub)}.`,
    { cause },
  );
}

function policyBlocks(host: string): AmalgamError {
  return new AmalgamError(
    'HubError',
    `The hub wants large files sent to ${host}, which the policy of this page does not name.`,
    'Push with the command (amalgam push), or build the page with this host in VITE_HUB_URL.',
  );
}

/** Origins blocked by the policy of the page (Content-Security-Policy, connect-src). */
const blocked = new Set<string>();
if (typeof XMLHttpRequest !== 'undefined') {
  globalThis.addEventListener('securitypolicyviolation', ({ blockedURI }) => {
    if (URL.canParse(blockedURI)) blocked.add(new URL(blockedURI).origin);
  });
}

/** In a browser only XMLHttpRequest reports how much of a body is sent. */
export const putBlob: PutBlob = (url, content, signal, onSent) =>
  typeof XMLHttpRequest === 'undefined'
    ? putByFetch(url, content, signal, onSent)
    : putByRequest(url, content, signal, onSent);

const putByFetch: PutBlob = async (url, content, signal, onSent) => {
  const answer = await fetch(url, { method: 'PUT', body: content, signal });
  onSent(content.size);
  return { status: answer.status, etag: answer.headers.get('ETag') };
};

const putByRequest: PutBlob = (url, content, signal, onSent) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    let sent = 0;
    const sentUpTo = (bytes: number) => {
      onSent(bytes - sent);
      sent = bytes;
    };
    const fail = () => {
      signal.removeEventListener('abort', abort);
      reject(new Error('the connection failed'));
    };
    request.upload.onprogress = ({ loaded }) => sentUpTo(Math.min(loaded, content.size));
    request.onload = () => {
      signal.removeEventListener('abort', abort);
      sentUpTo(content.size);
      resolve({ status: request.status, etag: request.getResponseHeader('ETag') });
    };
    request.onerror = fail;
    request.onabort = fail;
    request.open('PUT', url);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) fail();
    else request.send(content);
  });

/** The next step where the store of large files refuses one. */
function storeHint(status: number): string {
  if ([401, 403, 404, 410].includes(status)) return 'Push again: addresses for sending last an hour or so.';
  if (status === 413 || status === 507)
    return 'The store takes no more of this account, or no file so large: make room there, or write smaller files (--shard-size).';
  if (status >= 500 || status === 429)
    return 'The store has a problem. Push again later: files that arrived are not sent twice.';
  return 'Push again: files that arrived are not sent twice.';
}
