/**
 * A hub of models on loopback, as `@huggingface/hub` and Amalgam talk to it: search, revisions, trees, and files
 * that redirect to a second origin. Nothing leaves the machine. Faults can be laid on any file or question.
 *
 *     npx tsx e2e/fake-hub.ts [port]      serves the sample family as amalgam/base, amalgam/kitchen, …
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  allowPages,
  modelFields,
  searchRepositories,
  sendError,
  sendJson,
  sendPage,
  sendPreflight,
  treeEntries,
} from './fake-hub/answers.ts';
import { type FaultRule, sendBody, takeFault } from './fake-hub/faults.ts';
import { type FakeApp, fakeOAuth } from './fake-hub/oauth.ts';
import {
  commitModel,
  type FakeFile,
  type FakeModel,
  type FakeRepository,
  resolveRevision,
} from './fake-hub/repository.ts';
import { type FakeAccount, fakeUploads } from './fake-hub/uploads.ts';

/** A token that may read everything, and one of a user who was granted nothing. Any other token is refused. */
export const READER_TOKEN = 'hf_reader';
export const STRANGER_TOKEN = 'hf_stranger';
/** A token of the user `writer`, which may read everything too, and write its own repositories and those of `amalgam`. */
export const WRITER_TOKEN = 'hf_writer';

export interface FakeHubOptions {
  models: FakeModel[];
  faults?: FaultRule[];
  /** Files in one page of a listing. Default 1000, as on the Hub. */
  pageSize?: number;
  /** Port of the hub, and of its download host. Default: any free port. */
  port?: number;
  cdnPort?: number;
  /** Apps that people can sign in to, as the user `writer`. */
  apps?: FakeApp[];
  /**
   * Where large files are stored: the second origin (`us`), another address of it (`eu`), or one that no policy names.
   * Default `us`.
   */
  region?: 'us' | 'eu' | 'unknown';
  /** Uploads of more bytes go in pieces of so many. Default 1 MiB. */
  pieceBytes?: number;
  /** Most bytes of a file that go out in a second, for each request. Default: as fast as they are taken. */
  bytesPerSecond?: number;
}

/** One request as it came in. */
export interface LoggedRequest {
  server: 'hub' | 'cdn';
  method: string;
  /** Path with query. */
  path: string;
  range?: string;
  authorization?: string;
  status: number;
  /** Bytes of a file that the system has taken for it. */
  sent: number;
}

export interface FakeHub {
  url: string;
  /** The second origin, where LFS files are redirected to. */
  cdnUrl: string;
  requests: LoggedRequest[];
  /** Rules in force; push to add, set `length = 0` to clear. */
  faults: FaultRule[];
  /** Makes the model the newest commit on its `main`; returns the commit. */
  push(model: FakeModel): Promise<string>;
  close(): Promise<void>;
}

/** The stores of the regions; all but the last are the one second server. */
function storageUrls(cdnUrl: string): Record<NonNullable<FakeHubOptions['region']>, string> {
  return { us: cdnUrl, eu: cdnUrl.replace('127.0.0.1', 'localhost'), unknown: 'http://127.0.0.3:4390' };
}

type Reader = 'anonymous' | 'stranger' | 'reader';

/** Starts the hub and its download host. */
export async function startFakeHub(options: FakeHubOptions): Promise<FakeHub> {
  const repositories = new Map<string, FakeRepository>();
  const faults = options.faults ?? [];
  const requests: LoggedRequest[] = [];

  const push = async (model: FakeModel) => {
    const key = model.dataset ? `datasets/${model.id}` : model.id;
    const repository = await commitModel(model, repositories.get(key));
    repositories.set(key, repository);
    return repository.refs.get('main') ?? '';
  };
  for (const model of options.models) await push(model);

  const accounts: FakeAccount[] = [
    { token: WRITER_TOKEN, name: 'writer', role: 'write', organizations: ['amalgam'] },
    { token: READER_TOKEN, name: 'reader', role: 'read' },
  ];
  const oauth = fakeOAuth(options.apps ?? [], (token, scopes) =>
    accounts.push({ token, name: 'writer', role: scopes.includes('contribute-repos') ? 'write' : 'read' }),
  );
  const uploads = fakeUploads({
    accounts,
    repositories,
    push,
    hubUrl: () => url,
    storageUrl: () => storageUrls(cdnUrl)[options.region ?? 'us'],
    pieceBytes: options.pieceBytes ?? 2 ** 20,
  });

  const serve = (
    server: LoggedRequest['server'],
    answer: (q: IncomingMessage, r: ServerResponse, logged: LoggedRequest) => Promise<void>,
  ) =>
    createServer((request, response) => {
      const { method = 'GET', url: path = '/', headers } = request;
      const logged: LoggedRequest = {
        server,
        method,
        path,
        ...(headers.range === undefined ? {} : { range: headers.range }),
        ...(headers.authorization === undefined ? {} : { authorization: headers.authorization }),
        status: 0,
        sent: 0,
      };
      requests.push(logged);
      allowPages(request, response, server);
      const answered =
        method === 'OPTIONS' ? Promise.resolve(sendPreflight(response)) : answer(request, response, logged);
      answered
        .catch((thrown: unknown) => {
          console.error(thrown);
          response.destroy();
        })
        .finally(() => {
          logged.status = response.statusCode;
        });
    });

  const hubServer = serve('hub', answerHub);
  const cdnServer = serve('cdn', answerCdn);
  const url = await listen(hubServer, options.port ?? 0);
  const cdnUrl = await listen(cdnServer, options.cdnPort ?? 0);

  async function answerHub(
    request: IncomingMessage,
    response: ServerResponse,
    logged: LoggedRequest,
  ): Promise<void> {
    const asked = new URL(request.url ?? '/', url);
    const path = decodeURIComponent(asked.pathname);
    if (await oauth.answer(request, response, asked)) return;
    const reader = readerOf(request, accounts);
    if (reader === undefined) return sendError(response, 401, 'Invalid credentials in Authorization header');
    const fault = takeFault(faults, path, 'resolver');
    if (fault) return sendFaultStatus(response, fault);
    if (await uploads.answerHub(request, response, asked)) return;

    if (path === '/api/models') {
      const found = searchRepositories(modelsOf(repositories), asked.searchParams, (r) => canSee(r, reader));
      const expand = asked.searchParams.getAll('expand');
      const items = found.map((r) => modelFields(r, r.refs.get('main') ?? '', expand));
      const limit = Number(asked.searchParams.get('limit') ?? options.pageSize ?? 1000);
      return sendPage(request, response, url, items, limit);
    }
    const cached = /^\/api\/resolve-cache\/(models|datasets)\/([^/]+\/[^/]+)\/([0-9a-f]{40})\/(.+)$/.exec(
      path,
    );
    const api = /^\/api\/(models|datasets)\/([^/]+\/[^/]+)\/(revision|tree)\/(.+)$/.exec(path);
    const resolve = /^\/(?:(datasets)\/)?([^/]+\/[^/]+)\/resolve\/(.+)$/.exec(path);
    const [, kind, name, what = '', rest = ''] = api ??
      cached ?? [null, resolve?.[1], resolve?.[2], 'resolve', resolve?.[3]];
    const id = kind === 'datasets' ? `datasets/${name}` : (name ?? '');

    const repository = repositories.get(id);
    if (!repository || !canSee(repository, reader)) {
      return reader === 'anonymous'
        ? sendError(response, 401, 'Invalid username or password.')
        : sendError(response, 404, 'Repository not found', 'RepoNotFound');
    }
    if (cached) return sendFile(request, response, logged, id, repository.commits.get(what)?.get(rest));
    if (what === 'resolve') return answerResolve(response, repository, reader, rest);

    const commit = resolveRevision(repository, rest);
    if (commit === undefined) return sendError(response, 404, `Invalid rev id: ${rest}`, 'RevisionNotFound');
    if (what === 'revision') {
      return sendJson(response, modelFields(repository, commit, asked.searchParams.getAll('expand')));
    }
    const files = repository.commits.get(commit) ?? new Map<string, FakeFile>();
    const entries = treeEntries(files, asked.searchParams.get('recursive') === 'true');
    return sendPage(request, response, url, entries, options.pageSize ?? 1000);
  }

  /** `/{id}/resolve/{revision}/{path}`: a redirect, to the download host for LFS and to the hub's own cache else. */
  async function answerResolve(
    response: ServerResponse,
    repository: FakeRepository,
    reader: Reader,
    rest: string,
  ): Promise<void> {
    const { model } = repository;
    const id = model.dataset ? `datasets/${model.id}` : model.id;
    if (repository.model.gated && reader !== 'reader') {
      const message = `Access to model ${id} is restricted.`;
      return sendError(response, reader === 'anonymous' ? 401 : 403, message, 'GatedRepo');
    }
    const slash = rest.indexOf('/');
    const revision = rest.slice(0, slash);
    const path = rest.slice(slash + 1);
    const commit = resolveRevision(repository, revision);
    if (commit === undefined)
      return sendError(response, 404, `Invalid rev id: ${revision}`, 'RevisionNotFound');
    const file = repository.commits.get(commit)?.get(path);
    if (!file) return sendError(response, 404, 'Entry not found', 'EntryNotFound');
    const fault = takeFault(faults, `${id}/${path}`, 'resolver');
    if (fault) return sendFaultStatus(response, fault);

    response.setHeader('X-Repo-Commit', commit);
    response.setHeader('X-Linked-Size', file.content.size);
    response.setHeader('X-Linked-ETag', `"${file.lfs?.oid ?? file.oid}"`);
    response.setHeader('RateLimit', '"resolvers";r=2999;t=300');
    const where = path.split('/').map(encodeURIComponent).join('/');
    const location = file.lfs
      ? `${cdnUrl}/${id}/${commit}/${where}?Expires=3600&Signature=fake`
      : `/api/resolve-cache/${model.dataset ? 'datasets' : 'models'}/${model.id}/${commit}/${where}`;
    response.writeHead(file.lfs ? 302 : 307, { Location: location }).end();
  }

  /** The download host knows no tokens: the address itself is the permission. */
  async function answerCdn(
    request: IncomingMessage,
    response: ServerResponse,
    logged: LoggedRequest,
  ): Promise<void> {
    const asked = new URL(request.url ?? '/', cdnUrl);
    const path = decodeURIComponent(asked.pathname);
    const fault = takeFault(faults, path, 'resolver');
    if (fault) return sendFaultStatus(response, fault);
    if (await uploads.answerStorage(request, response, asked)) return;
    const [, id = '', commit = '', file = ''] =
      /^\/((?:datasets\/)?[^/]+\/[^/]+)\/([0-9a-f]{40})\/(.+)$/.exec(path) ?? [];
    return sendFile(request, response, logged, id, repositories.get(id)?.commits.get(commit)?.get(file));
  }

  async function sendFile(
    request: IncomingMessage,
    response: ServerResponse,
    logged: LoggedRequest,
    id: string,
    file: FakeFile | undefined,
  ): Promise<void> {
    if (!file) return sendError(response, 404, 'Entry not found', 'EntryNotFound');
    const { size } = file.content;
    const asked = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const range = asked
      ? { begin: Number(asked[1]), end: Math.min(Number(asked[2]) + 1, size) }
      : { begin: 0, end: size };
    if (asked && range.begin >= size) {
      response.setHeader('Content-Range', `bytes */${size}`);
      return void response.writeHead(416).end();
    }
    const fault = takeFault(faults, `${id}/${file.path}`, 'bytes', range);
    const begun = performance.now();
    const onSent = async (bytes: number) => {
      logged.sent += bytes;
      const early = (1000 * logged.sent) / (options.bytesPerSecond ?? Infinity) - (performance.now() - begun);
      if (early > 0) await delay(early);
    };
    response.setHeader('Accept-Ranges', 'bytes');
    response.setHeader('ETag', `"${file.lfs?.oid ?? file.oid}"`);
    response.setHeader('Content-Type', 'application/octet-stream');
    if (!asked || fault?.kind === 'ignore-range') {
      response.statusCode = 200;
      return sendBody(response, file.content, 0, size, fault, onSent);
    }
    response.statusCode = 206;
    const right = `bytes ${range.begin}-${range.end - 1}/${size}`;
    const contentRange = fault?.kind === 'content-range' ? fault.value : right;
    if (contentRange !== null) response.setHeader('Content-Range', contentRange);
    return sendBody(response, file.content, range.begin, range.end, fault, onSent);
  }

  return {
    url,
    cdnUrl,
    requests,
    faults,
    push,
    async close() {
      await Promise.all([hubServer, cdnServer].map(closeServer));
    },
  };
}

/** The sample family as Hub models, plus a gated and a private copy of its base. */
export function sampleModels(samples: string): FakeModel[] {
  const derived = (kind: 'adapter' | 'finetune') => [
    'base_model:amalgam/base',
    `base_model:${kind}:amalgam/base`,
  ];
  return [
    { id: 'amalgam/base', files: join(samples, 'base'), downloads: 900, likes: 9 },
    { id: 'amalgam/kitchen', files: join(samples, 'kitchen'), downloads: 500, tags: derived('adapter') },
    { id: 'amalgam/harbour', files: join(samples, 'harbour'), downloads: 400, tags: derived('adapter') },
    { id: 'amalgam/workshop', files: join(samples, 'workshop'), downloads: 300, tags: derived('finetune') },
    { id: 'amalgam/gated', files: join(samples, 'base'), downloads: 200, gated: 'manual' },
    { id: 'amalgam/private', files: join(samples, 'base'), downloads: 100, private: true },
  ];
}

function readerOf(request: IncomingMessage, accounts: readonly FakeAccount[]): Reader | undefined {
  const { authorization } = request.headers;
  if (authorization === undefined) return 'anonymous';
  if (accounts.some(({ token }) => authorization === `Bearer ${token}`)) return 'reader';
  return authorization === `Bearer ${STRANGER_TOKEN}` ? 'stranger' : undefined;
}

function modelsOf(repositories: ReadonlyMap<string, FakeRepository>): FakeRepository[] {
  return [...repositories.values()].filter(({ model }) => !model.dataset);
}

function canSee(repository: FakeRepository, reader: Reader): boolean {
  return !repository.model.private || reader === 'reader';
}

function sendFaultStatus(response: ServerResponse, fault: FaultRule['fault']): void {
  if (fault.kind !== 'status') throw new Error('only a status can strike here');
  for (const [name, value] of Object.entries(fault.headers ?? {})) response.setHeader(name, value);
  response.writeHead(fault.status).end();
}

function listen(server: Server, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
  });
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const samples = fileURLToPath(new URL('../public/samples', import.meta.url));
  const hub = await startFakeHub({ models: sampleModels(samples), port: Number(process.argv[2] ?? 8700) });
  console.log(
    `hub        ${hub.url}\ndownloads  ${hub.cdnUrl}\ntokens     ${READER_TOKEN} (reads), ${WRITER_TOKEN} (writes)`,
  );
}
