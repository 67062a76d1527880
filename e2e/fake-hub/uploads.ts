/**
 * The writing half of the fake hub: accounts, repositories, Git LFS and commits, as huggingface_hub and
 * `@huggingface/hub` speak to the real one. Pieces of large files go to the second origin, under addresses that are
 * their own permission.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendError, sendJson } from './answers.ts';
import { cardErrors } from './model-card.ts';
import type { FakeModel, FakeRepository } from './repository.ts';

/** A user whose token may read only, or write too. */
export interface FakeAccount {
  token: string;
  name: string;
  role: 'read' | 'write';
  organizations?: string[];
}

export interface Uploads {
  /** Answers a request to the hub's API for writing; false when it is none. */
  answerHub(request: IncomingMessage, response: ServerResponse, asked: URL): Promise<boolean>;
  /** Takes a piece of a large file; false when the address is of something else. */
  answerStorage(request: IncomingMessage, response: ServerResponse, asked: URL): Promise<boolean>;
}

interface Surroundings {
  accounts: readonly FakeAccount[];
  repositories: ReadonlyMap<string, FakeRepository>;
  /** Makes the model the newest commit on its `main`; returns the commit. */
  push(model: FakeModel): Promise<string>;
  hubUrl(): string;
  storageUrl(): string;
  /** Files of more bytes are sent in pieces of so many. */
  pieceBytes: number;
}

/** The line the Hub adds for every kind of file that is in LFS. */
const GIT_ATTRIBUTES = '*.safetensors filter=lfs diff=lfs merge=lfs -text\n';
const LFS_BYTES = 10 * 2 ** 20;

export function fakeUploads(around: Surroundings): Uploads {
  /** Large files that arrived, by sha256; only what was asked for can arrive. */
  const stored = new Map<string, Buffer>();
  const pieces = new Map<string, Buffer>();
  const signature = randomBytes(8).toString('hex');

  async function answerHub(request: IncomingMessage, response: ServerResponse, asked: URL): Promise<boolean> {
    const path = decodeURIComponent(asked.pathname);
    const account = around.accounts.find(({ token }) => request.headers.authorization === `Bearer ${token}`);
    if (path === '/api/whoami-v2') {
      if (!account) sendError(response, 401, 'Invalid username or password.');
      else sendJson(response, whoAmI(account));
      return true;
    }
    if (request.method !== 'POST') return false;
    if (path === '/api/validate-yaml') {
      const { content } = JSON.parse((await readBody(request)).toString()) as { content: string };
      const errors = cardErrors(content).map((message) => ({ message }));
      response.writeHead(errors.length > 0 ? 400 : 200, {
        'Content-Type': 'application/json; charset=utf-8',
      });
      response.end(JSON.stringify({ errors, warnings: [] }));
      return true;
    }
    if (path === '/api/complete_multipart') return completeParts(request, response, asked);
    const [, id = '', what = ''] =
      /^\/api\/models\/([^/]+\/[^/]+)\/(preupload|commit)\/main$/.exec(path) ??
      /^\/([^/]+\/[^/]+)\.git\/info\/lfs\/objects\/(batch|verify)$/.exec(path) ??
      [];
    if (path !== '/api/repos/create' && what === '') return false;
    if (!account) {
      sendError(response, 401, 'Invalid username or password.');
      return true;
    }
    if (account.role === 'read') {
      sendError(response, 403, 'Forbidden: you must use a write token to upload to a repository.');
      return true;
    }
    const body = await readBody(request);
    if (path === '/api/repos/create') await create(response, account, JSON.parse(body.toString()));
    else if (!owns(account, id)) {
      sendError(response, 403, `Forbidden: you don't have the right to write to ${id}.`);
    } else if (!around.repositories.has(id)) {
      sendError(response, 404, 'Repository not found', 'RepoNotFound');
    } else if (what === 'preupload') preupload(response, JSON.parse(body.toString()));
    else if (what === 'batch') batch(response, id, JSON.parse(body.toString()));
    else if (what === 'verify') verify(response, JSON.parse(body.toString()));
    else await commit(response, id, body.toString());
    return true;
  }

  async function create(
    response: ServerResponse,
    account: FakeAccount,
    asked: { name: string; organization: string; type: string; visibility?: string },
  ): Promise<void> {
    const id = `${asked.organization}/${asked.name}`;
    if (!owns(account, id)) {
      const message = `You don't have the rights to create a model under the namespace "${asked.organization}"`;
      return sendError(response, 403, message);
    }
    if (around.repositories.has(id)) {
      response.setHeader('Content-Type', 'application/json; charset=utf-8');
      const url = `${around.hubUrl()}/${id}`;
      return void response
        .writeHead(409)
        .end(JSON.stringify({ error: 'You already created this model repo', url, id }));
    }
    await around.push({
      id,
      files: { '.gitattributes': GIT_ATTRIBUTES },
      private: asked.visibility === 'private',
    });
    sendJson(response, { url: `${around.hubUrl()}/${id}`, name: id, id });
  }

  function preupload(
    response: ServerResponse,
    { files }: { files: { path: string; size: number; sample: string }[] },
  ): void {
    sendJson(response, {
      files: files.map(({ path, size }) => ({
        path,
        uploadMode: /\.safetensors$/.test(path) || size > LFS_BYTES ? 'lfs' : 'regular',
        shouldIgnore: false,
      })),
    });
  }

  function batch(
    response: ServerResponse,
    id: string,
    { objects, transfers }: { objects: { oid: string; size: number }[]; transfers: string[] },
  ): void {
    const transfer = transfers.includes('multipart') ? 'multipart' : 'basic';
    response.setHeader('Content-Type', 'application/vnd.git-lfs+json');
    sendJson(response, {
      transfer,
      objects: objects.map(({ oid, size }) => {
        if (stored.has(oid)) return { oid, size };
        const at = (part: number) =>
          `${around.storageUrl()}/lfs/${oid}?partNumber=${part}&X-Amz-Signature=${signature}`;
        const verifyAction = { href: `${around.hubUrl()}/${id}.git/info/lfs/objects/verify` };
        if (transfer === 'basic' || size <= around.pieceBytes) {
          return {
            oid,
            size,
            authenticated: true,
            actions: { upload: { href: at(0) }, verify: verifyAction },
          };
        }
        const header: Record<string, string> = { chunk_size: String(around.pieceBytes) };
        for (let part = 1; (part - 1) * around.pieceBytes < size; part++) {
          header[String(part).padStart(5, '0')] = at(part);
        }
        const href = `${around.hubUrl()}/api/complete_multipart?oid=${oid}&signature=${signature}`;
        return {
          oid,
          size,
          authenticated: true,
          actions: { upload: { href, header }, verify: verifyAction },
        };
      }),
    });
  }

  async function answerStorage(
    request: IncomingMessage,
    response: ServerResponse,
    asked: URL,
  ): Promise<boolean> {
    const oid = /^\/lfs\/([0-9a-f]{64})$/.exec(asked.pathname)?.[1];
    if (oid === undefined) return false;
    const content = await readBody(request);
    if (request.method !== 'PUT' || asked.searchParams.get('X-Amz-Signature') !== signature) {
      response.writeHead(403).end();
      return true;
    }
    const part = asked.searchParams.get('partNumber') ?? '';
    if (part === '0') {
      if (sha256(content) !== oid) return refuse(response);
      stored.set(oid, content);
    } else {
      pieces.set(`${oid} ${part}`, content);
    }
    response.setHeader('ETag', `"${createHash('md5').update(content).digest('hex')}"`);
    response.writeHead(200).end();
    return true;
  }

  async function completeParts(
    request: IncomingMessage,
    response: ServerResponse,
    asked: URL,
  ): Promise<boolean> {
    const body: { oid: string; parts: { partNumber: number; etag: string }[] } = JSON.parse(
      (await readBody(request)).toString(),
    );
    const found = body.parts.map(({ partNumber, etag }) => {
      const piece = pieces.get(`${body.oid} ${partNumber}`);
      const tag = piece && `"${createHash('md5').update(piece).digest('hex')}"`;
      return tag === etag ? piece : undefined;
    });
    const whole = Buffer.concat(found.filter((piece) => piece !== undefined));
    if (asked.searchParams.get('signature') !== signature || sha256(whole) !== body.oid) {
      return refuse(response);
    }
    stored.set(body.oid, whole);
    sendJson(response, { success: true });
    return true;
  }

  function verify(response: ServerResponse, { oid, size }: { oid: string; size: number }): void {
    if (stored.get(oid)?.length === size) sendJson(response, {});
    else sendError(response, 404, 'The object is not in the storage.');
  }

  async function commit(response: ServerResponse, id: string, lines: string): Promise<void> {
    const operations: { key: string; value: Record<string, string> }[] = lines
      .split('\n')
      .map((line) => JSON.parse(line));
    const [header, ...changes] = operations;
    const repository = around.repositories.get(id)!;
    const head = repository.refs.get('main');
    if (header?.value.parentCommit !== undefined && header.value.parentCommit !== head) {
      return sendError(response, 412, 'A commit has happened since. Please refresh and try again.');
    }
    const files: Record<string, Uint8Array<ArrayBuffer> | string> = {};
    for (const [path, { content }] of repository.commits.get(head ?? '') ?? []) {
      files[path] = new Uint8Array(await content.arrayBuffer());
    }
    for (const { key, value } of changes) {
      const content =
        key === 'file' ? Buffer.from(value.content ?? '', 'base64') : stored.get(value.oid ?? '');
      if (!content) return sendError(response, 400, `LFS pointer to ${value.path} has no object.`);
      files[value.path ?? ''] = new Uint8Array(content);
    }
    const [wrong] = cardErrors(Buffer.from(files['README.md'] ?? '').toString());
    if (wrong !== undefined) return sendError(response, 400, `Invalid metadata in README.md. - ${wrong}`);
    const oid = await around.push({ ...repository.model, files });
    sendJson(response, {
      success: true,
      commitOid: oid,
      commitUrl: `${around.hubUrl()}/${id}/commit/${oid}`,
    });
  }

  return { answerHub, answerStorage };
}

function whoAmI({ name, role, organizations = [] }: FakeAccount): object {
  return {
    type: 'user',
    id: `id-${name}`,
    name,
    fullname: name,
    email: null,
    emailVerified: true,
    canPay: false,
    isPro: false,
    avatarUrl: '',
    periodEnd: null,
    orgs: organizations.map((org) => ({ type: 'org', id: `id-${org}`, name: org, fullname: org })),
    auth: {
      type: 'access_token',
      accessToken: { displayName: 'test', role, createdAt: '2026-01-01T00:00:00.000Z' },
    },
  };
}

function owns({ name, organizations = [] }: FakeAccount, id: string): boolean {
  return [name, ...organizations].includes(id.split('/')[0] ?? '');
}

function refuse(response: ServerResponse): true {
  response.writeHead(400, { 'Content-Type': 'application/xml' }).end('<Error><Code>BadDigest</Code></Error>');
  return true;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
