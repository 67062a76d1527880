import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FakeFile, FakeRepository } from './repository.ts';

/** Headers that the real Hub exposes to pages (seen in its answers, 2026); `RateLimit` is not among them. */
const HUB_EXPOSES =
  'X-Repo-Commit,X-Request-Id,X-Error-Code,X-Error-Message,X-Total-Count,ETag,Link,Accept-Ranges,Content-Range,' +
  'X-Linked-Size,X-Linked-ETag,X-Xet-Hash';

/** CORS as the Hub (origin echoed, a list of headers) and its download hosts (everything) send it. */
export function allowPages(request: IncomingMessage, response: ServerResponse, server: 'hub' | 'cdn'): void {
  response.setHeader('Access-Control-Allow-Origin', server === 'cdn' ? '*' : (request.headers.origin ?? '*'));
  response.setHeader('Access-Control-Expose-Headers', server === 'cdn' ? '*' : HUB_EXPOSES);
  response.setHeader('Access-Control-Max-Age', '86400');
  if (server === 'hub') response.setHeader('Vary', 'Origin');
}

/** Answers a preflight. */
export function sendPreflight(response: ServerResponse): void {
  response.setHeader('Access-Control-Allow-Methods', 'GET,HEAD,POST,PUT,OPTIONS');
  response.setHeader('Access-Control-Allow-Headers', 'authorization,range,accept,content-type');
  response.writeHead(204).end();
}

export function sendJson(response: ServerResponse, value: unknown): void {
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.writeHead(200).end(JSON.stringify(value));
}

/** A refusal with the Hub's two explaining headers. */
export function sendError(response: ServerResponse, status: number, message: string, code?: string): void {
  response.setHeader('X-Error-Message', message);
  if (code !== undefined) response.setHeader('X-Error-Code', code);
  if (status === 401)
    response.setHeader('WWW-Authenticate', 'Bearer realm="Authentication required", charset="UTF-8"');
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.writeHead(status).end(JSON.stringify({ error: message }));
}

/** One model in the form of `/api/models`, with the fields that `expand` asks for. */
export function modelFields(repository: FakeRepository, commit: string, expand: readonly string[]): object {
  const { model, tags, cardData, safetensors } = repository;
  const fields = new Map<string, unknown>([
    ['private', model.private ?? false],
    ['gated', model.gated ?? false],
    ['downloads', model.downloads ?? 0],
    ['likes', model.likes ?? 0],
    ['lastModified', model.updatedAt ?? '2026-01-01T00:00:00.000Z'],
    ['pipeline_tag', 'text-generation'],
    ['tags', tags],
    ['cardData', cardData],
    ['sha', commit],
    ['safetensors', safetensors],
    ['siblings', [...(repository.commits.get(commit)?.keys() ?? [])].map((rfilename) => ({ rfilename }))],
  ]);
  const wanted = expand.filter((key) => fields.get(key) !== undefined).map((key) => [key, fields.get(key)]);
  return { _id: commit.slice(0, 24), id: model.id, ...Object.fromEntries(wanted) };
}

/** Models that a search finds, most downloaded first. */
export function searchRepositories(
  repositories: Iterable<FakeRepository>,
  query: URLSearchParams,
  visible: (repository: FakeRepository) => boolean,
): FakeRepository[] {
  const text = (query.get('search') ?? '').toLowerCase();
  const author = query.get('author');
  const filters = query.getAll('filter');
  return [...repositories]
    .filter(visible)
    .filter(({ model }) => model.id.toLowerCase().includes(text))
    .filter(({ model }) => author === null || model.id.startsWith(`${author}/`))
    .filter(({ tags }) => filters.every((filter) => tags.includes(filter)))
    .sort((a, b) => (b.model.downloads ?? 0) - (a.model.downloads ?? 0));
}

/** Entries of `/tree`: files and the folders they are in; without `recursive` only the top. */
export function treeEntries(files: ReadonlyMap<string, FakeFile>, recursive: boolean): object[] {
  const folders = new Set<string>();
  for (const path of files.keys()) {
    const parts = path.split('/').slice(0, -1);
    parts.forEach((_, i) => {
      folders.add(parts.slice(0, i + 1).join('/'));
    });
  }
  const entries = [
    ...[...folders].map((path) => ({ type: 'directory', oid: '0'.repeat(40), size: 0, path })),
    ...[...files.values()].map(({ path, content, oid, lfs }) => ({
      type: 'file',
      oid,
      size: content.size,
      path,
      ...(lfs ? { lfs } : {}),
    })),
  ];
  return recursive ? entries : entries.filter(({ path }) => !path.includes('/'));
}

/** One page of a list, with the `Link` header that leads to the next. */
export function sendPage(
  request: IncomingMessage,
  response: ServerResponse,
  origin: string,
  items: readonly object[],
  pageSize: number,
): void {
  const url = new URL(request.url ?? '/', origin);
  const from = Number(url.searchParams.get('cursor') ?? 0);
  if (from + pageSize < items.length) {
    url.searchParams.set('cursor', String(from + pageSize));
    response.setHeader('Link', `<${url.href}>; rel="next"`);
  }
  sendJson(response, items.slice(from, from + pageSize));
}
