/**
 * Files to a model repository on a hub, as one commit. Large ones go to the storage the hub names by the Git LFS batch
 * protocol (transfers `basic` and the Hub's `multipart`), the others travel in the commit. Protocol as spoken by
 * huggingface_hub (`lfs.py`, `_commit_api.py`) and `@huggingface/hub` (`commit.ts`).
 */

import { whoAmI } from '@huggingface/hub';
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import { isRepoId } from '../formats/hub-id';
import { displayName } from '../formats/names';
import { bytesOf } from '../platform';
import type { HubAccount, PushTarget } from '../reports/push';
import { throwIfCancelled } from './cancellation';
import type { RequestSubject } from './http-error';
import { openHubModel } from './hub';
import { hubPost } from './hub-post';
import { type Hub, hubFailure, hubFetch } from './hub-request';
import { isBlocked, type PutBlob, putBlob } from './put-blob';
import { Retryable, retrying } from './retries';

/** A file to send; `sha256` of its whole content. */
export interface UploadFile {
  path: string;
  content: Blob;
  sha256: string;
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
  /** Called once, with what has to be sent: files the hub has already are not. */
  begin(bytes: number): void;
  advance(bytes: number, path: string): void;
  committing(): void;
}

/** A repository before anything is sent. */
export type RepoState = Omit<PushTarget, 'taken'>;

const PREUPLOAD_FILES = 100;
/** Pieces on their way at once, as `@huggingface/hub` does. */
const PIECES_AT_ONCE = 5;
const SAMPLE_BYTES = 512;

const action = v.object({ href: v.string(), header: v.optional(v.record(v.string(), v.string()), {}) });
const batchSchema = v.object({
  objects: v.array(
    v.object({
      oid: v.string(),
      error: v.optional(v.object({ code: v.number(), message: v.string() })),
      actions: v.optional(v.object({ upload: v.optional(action), verify: v.optional(action) })),
    }),
  ),
});
const preuploadSchema = v.object({
  files: v.array(v.object({ path: v.string(), uploadMode: v.picklist(['lfs', 'regular']) })),
});
const anything = v.unknown();

/** @throws Unauthorized without a token, or with one the hub does not know */
export async function hubAccount(hub: Hub, signal?: AbortSignal): Promise<HubAccount> {
  const subject: RequestSubject = { name: 'your account', host: new URL(hub.url).host };
  if (!hub.token) throw noToken(subject);
  try {
    const found = await whoAmI({
      accessToken: hub.token,
      hubUrl: hub.url,
      fetch: hubFetch(hub, subject, signal),
    });
    return {
      name: found.name,
      organisations: found.type === 'user' ? found.orgs.map((org) => org.name) : [],
      mayWrite: hub.mayWrite ?? found.auth.accessToken?.role !== 'read',
    };
  } catch (thrown) {
    // the library itself refuses what cannot be a token
    if (thrown instanceof TypeError) throw noToken(subject, thrown);
    throw hubFailure(thrown, subject);
  }
}

/** The repository as it is now. @throws UnsafeName for what is no `owner/name` */
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
    // A token that works is told apart from a missing one: only then does 404 mean that there is nothing.
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
  const [organization, name] = repo.split('/');
  const body = JSON.stringify({ type: 'model', organization, name, private: isPrivate });
  const post = { to: '/api/repos/create', body, also: [409] };
  return (await hubPost(hub, post, anything, subjectOf(hub, repo), signal)).status !== 409;
}

const cardSchema = v.object({ errors: v.optional(v.array(v.object({ message: v.string() })), []) });

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
  const body = JSON.stringify({ repoType: 'model', content: readme });
  const post = { to: '/api/validate-yaml', body, also: [400, 404] }; // a hub without this check has nothing to say
  const { value } = await hubPost(hub, post, cardSchema, subjectOf(hub, repo), signal);
  if (value.errors.length === 0) return;
  throw new AmalgamError(
    'ConfigInvalid',
    `The hub refuses the metadata of README.md: ${value.errors.map(({ message }) => displayName(message, 300)).join('; ')}`,
    'Change the block between the --- lines of README.md, and push again. Nothing was sent.',
  );
}

/**
 * Sends the files and commits them on `main`. Nothing of it can be seen in the repository before the commit.
 * @param put how bytes go to the storage
 * @returns the commit, and the paths whose bytes went to the storage
 * @throws Cancelled, FileChanged when the repository moved on, and refusals in words
 */
export async function uploadFiles(
  hub: Hub,
  { repo, files, summary, parent }: Upload,
  meter: UploadMeter,
  signal: AbortSignal,
  put: PutBlob = putBlob,
): Promise<{ commit: string; sent: ReadonlySet<string> }> {
  const subject = subjectOf(hub, repo);
  const large = new Set<string>();
  for (let at = 0; at < files.length; at += PREUPLOAD_FILES) {
    const asked = await Promise.all(
      files.slice(at, at + PREUPLOAD_FILES).map(async ({ path, content }) => {
        const sample = base64(await bytesOf(content.slice(0, SAMPLE_BYTES)));
        return { path, size: content.size, sample };
      }),
    );
    const post = { to: `/api/models/${repo}/preupload/main`, body: JSON.stringify({ files: asked }) };
    const { value } = await hubPost(hub, post, preuploadSchema, subject, signal);
    for (const { path, uploadMode } of value.files) if (uploadMode === 'lfs') large.add(path);
  }
  const lfs = files.filter((f) => large.has(f.path));
  const sent = await sendLarge(hub, lfs, subject, meter, signal, put);
  meter.committing();
  const lines: object[] = [{ key: 'header', value: { summary, parentCommit: parent } }];
  for (const { path, content, sha256 } of files) {
    lines.push(
      large.has(path)
        ? { key: 'lfsFile', value: { path, algo: 'sha256', oid: sha256, size: content.size } }
        : { key: 'file', value: { path, encoding: 'base64', content: base64(await bytesOf(content)) } },
    );
  }
  throwIfCancelled(signal);
  const post = {
    to: `/api/models/${repo}/commit/main`,
    body: lines.map((line) => JSON.stringify(line)).join('\n'),
    type: 'application/x-ndjson',
    again: false,
  };
  const { value } = await hubPost(hub, post, v.object({ commitOid: v.string() }), subject, signal);
  return { commit: value.commitOid, sent };
}

async function sendLarge(
  hub: Hub,
  files: readonly UploadFile[],
  subject: RequestSubject,
  meter: UploadMeter,
  signal: AbortSignal,
  put: PutBlob,
): Promise<ReadonlySet<string>> {
  const sent = new Set<string>();
  if (files.length === 0) return sent;
  const body = JSON.stringify({
    operation: 'upload',
    transfers: ['basic', 'multipart'],
    hash_algo: 'sha_256',
    ref: { name: 'main' },
    objects: files.map((f) => ({ oid: f.sha256, size: f.content.size })),
  });
  const lfsType = 'application/vnd.git-lfs+json';
  const batch = { to: `/${subject.name}.git/info/lfs/objects/batch`, body, type: lfsType };
  const { value } = await hubPost(hub, batch, batchSchema, subject, signal);
  const answers = new Map(value.objects.map((object) => [object.oid, object]));
  const toSend: { file: UploadFile; upload: v.InferOutput<typeof action>; verify?: string }[] = [];
  for (const file of files) {
    const answer = answers.get(file.sha256);
    if (!answer) throw oddAnswer(subject, `has no answer about ${file.path}`);
    if (answer.error) throw oddAnswer(subject, `refuses ${file.path}: ${displayName(answer.error.message)}`);
    const { upload, verify } = answer.actions ?? {};
    if (upload) toSend.push({ file, upload, ...(verify ? { verify: verify.href } : {}) });
  }
  meter.begin(toSend.reduce((sum, { file }) => sum + file.content.size, 0));
  for (const { file, upload, verify } of toSend) {
    const { path, content, sha256 } = file;
    const send = (url: string, piece: Blob) =>
      sendPiece(hub, url, piece, path, subject, signal, put, (bytes) => meter.advance(bytes, path));
    const pieceBytes = Number(upload.header.chunk_size ?? 0);
    if (pieceBytes > 0) {
      const urls = Object.entries(upload.header)
        .filter(([key]) => /^\d+$/.test(key))
        .sort(([a], [b]) => Number(a) - Number(b))
        .map(([, url]) => url);
      if (urls.length !== Math.ceil(content.size / pieceBytes)) {
        throw oddAnswer(subject, `names ${urls.length} addresses for the pieces of ${path}`);
      }
      const parts: { partNumber: number; etag: string }[] = [];
      await eachAtOnce(urls, PIECES_AT_ONCE, async (url, i) => {
        const etag = await send(url, content.slice(i * pieceBytes, (i + 1) * pieceBytes));
        if (etag === null) throw oddAnswer(subject, `gives no tag for a piece of ${path}`);
        parts[i] = { partNumber: i + 1, etag };
      });
      const done = { to: upload.href, body: JSON.stringify({ oid: sha256, parts }), type: lfsType };
      await hubPost(hub, done, anything, subject, signal);
    } else {
      await send(upload.href, content);
    }
    if (verify !== undefined) {
      const check = { to: verify, body: JSON.stringify({ oid: sha256, size: content.size }), type: lfsType };
      await hubPost(hub, check, anything, subject, signal);
    }
    sent.add(path);
  }
  return sent;
}

/** Acts on every item, on so many at once; after a failure none is begun. */
async function eachAtOnce<T>(
  items: readonly T[],
  atOnce: number,
  act: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const left = items.entries();
  const workers = Array.from({ length: Math.min(atOnce, items.length) }, async () => {
    for (const [index, item] of left) await act(item, index);
  });
  await Promise.all(workers);
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
        if (isBlocked(url)) throw policyBlocks(host);
        const message = `The connection to ${host} was lost while ${path} was sent.`;
        const hint = 'Check the connection and push again: files that arrived are not sent twice.';
        throw new Retryable('connection', new AmalgamError('Offline', message, hint, { cause }));
      });
      if (answer.status >= 200 && answer.status < 300) return answer.etag;
      advance(-sent);
      const error = new AmalgamError(
        'HubError',
        `${host} refused ${path} with status ${answer.status}.`,
        'Push again: addresses for sending last an hour or so.',
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
  return { name: repo, host: new URL(hub.url).host, page: `${hub.url}/${repo}` };
}

function noToken(subject: RequestSubject, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'Unauthorized',
    `Pushing to ${subject.host} needs an access token that begins with hf_.`,
    'Create one with write permission in your account settings there, and paste it.',
    { cause },
  );
}

function oddAnswer({ host }: RequestSubject, what: string): AmalgamError {
  return new AmalgamError(
    'HubError',
    `${host} ${what}.`,
    'Push again later; look at the repository in a browser.',
  );
}

function policyBlocks(host: string): AmalgamError {
  return new AmalgamError(
    'HubError',
    `The hub wants large files sent to ${host}, which the policy of this page does not name.`,
    'Push with the command (amalgam push), or build the page with this host in VITE_HUB_URL.',
  );
}

/** RFC 4648 with padding, in pieces that end on whole groups. */
function base64(bytes: Uint8Array): string {
  const piece = 3 * 8192;
  let text = '';
  for (let at = 0; at < bytes.length; at += piece) {
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + piece)));
  }
  return text;
}
