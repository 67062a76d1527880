import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname } from 'node:path';
import { AmalgamError, errorReport } from '../errors';
import { contentSecurityPolicy, HUB_ORIGINS } from './content-security-policy';
import type { OutputFolder } from './output-folder';
import { listFolder, type ServedFile, sendFile } from './served-folder';

/** The server behind the headless command's page; on this machine only. */
export interface AppServer {
  /** The page's address, slash at the end. */
  readonly url: string;
  /**
   * Lets the page read a folder. Returns the path under which it is listed, slash at the end, and the links in it that
   * lead to nothing.
   */
  serveFolder(folder: string): Promise<{ url: string; dangling: string[] }>;
  /** Lets the page write the output. Returns the path for `PUT`, `POST …/commit` and `DELETE`. */
  receiveOutput(output: OutputFolder): string;
  close(): Promise<void>;
}

/** Largest body of one `PUT`; the page sends at most this. */
const MAX_PIECE_BYTES = 16 * 2 ** 20;
const MAX_COMMIT_BYTES = 16 * 2 ** 20;

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};

/**
 * Serves the built studio at the root, and models and the output under a path nobody can guess, on 127.0.0.1.
 *
 * @param dist folder of the built studio
 * @param connect origins besides its own that the page may talk to
 * @param port 0 for any free one
 */
export async function startAppServer(dist: string, connect: readonly string[], port = 0): Promise<AppServer> {
  const { files: pageFiles } = await listFolder(dist);
  const secret = `/${randomBytes(16).toString('hex')}`;
  const folders: Map<string, ServedFile>[] = [];
  let output: OutputFolder | undefined;
  let host = '';

  const headers = {
    'Content-Security-Policy': `${contentSecurityPolicy(connect)}; frame-ancestors 'none'`,
    'Cross-Origin-Resource-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    // Models are large; the browser's cache would keep a second copy of them.
    'Cache-Control': 'no-store',
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', `http://${host}`);
    const path = decodeURIComponent(pathname);
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    // A page of some other site whose name was pointed at this machine says that name here.
    if (request.headers.host !== host) return refuse(response, 403, 'wrong host');
    if (path.startsWith(`${secret}/output`)) {
      return answerOutput(request, response, path.slice(secret.length + '/output'.length), searchParams);
    }
    if (!isReading) return refuse(response, 405, 'cannot be written');
    if (path.startsWith(`${secret}/models/`)) {
      const [, number = '', file = ''] = /^(\d+)\/(.*)$/s.exec(path.slice(`${secret}/models/`.length)) ?? [];
      const files = folders[Number(number)];
      if (number === '' || !files) return refuse(response, 404, 'no such folder');
      if (file === '') return sendListing(response, files);
      return sendListed(request, response, files.get(file), 'application/octet-stream');
    }
    const name = path === '/' ? 'index.html' : path.slice(1);
    if (name === 'index.html') return sendIndex(response);
    return sendListed(
      request,
      response,
      pageFiles.get(name),
      TYPES[extname(name)] ?? 'application/octet-stream',
    );
  }

  async function sendListed(
    request: IncomingMessage,
    response: ServerResponse,
    file: ServedFile | undefined,
    type: string,
  ): Promise<void> {
    if (!file) return refuse(response, 404, 'no such file');
    return sendFile(request, response, file, { ...headers, 'Content-Type': type });
  }

  function sendListing(response: ServerResponse, files: Map<string, ServedFile>): void {
    const listing = { files: [...files.values()].map(({ path, size }) => ({ path, size })) };
    response.writeHead(200, { ...headers, 'Content-Type': 'application/json' }).end(JSON.stringify(listing));
  }

  /** The page as it is, unless its own policy would keep it from the hub in use: the header has the one for that. */
  async function sendIndex(response: ServerResponse): Promise<void> {
    const file = pageFiles.get('index.html');
    if (!file) return refuse(response, 404, 'the studio is not built');
    const html = await readFile(file.location, 'utf8');
    const page =
      connect === HUB_ORIGINS ? html : html.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, '');
    response.writeHead(200, { ...headers, 'Content-Type': TYPES['.html'] }).end(page);
  }

  async function answerOutput(
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    query: URLSearchParams,
  ): Promise<void> {
    if (!output) return refuse(response, 404, 'no output is being written');
    const reply = (value: object) =>
      response.writeHead(200, { ...headers, 'Content-Type': 'application/json' }).end(JSON.stringify(value));
    if (request.method === 'GET' || request.method === 'HEAD') {
      const file = await output.find(path === '' ? 'journal' : path.slice(1));
      // a run that begins has no journal yet
      if (!file && path === '') return void response.writeHead(200, headers).end();
      return sendListed(request, response, file, 'application/octet-stream');
    }
    if (request.method === 'PUT') {
      if (Number(request.headers['content-length'] ?? 0) > MAX_PIECE_BYTES) {
        return refuse(response, 413, 'the piece is too large');
      }
      const offset = query.get('offset') ?? '';
      if (!/^\d{1,15}$/.test(offset)) return refuse(response, 400, 'the offset is not a number');
      const size =
        path === ''
          ? await output.appendJournal(Number(offset), request)
          : await output.append(path.slice(1), Number(offset), request);
      reply({ size });
    } else if (request.method === 'POST' && path === '/commit') {
      await output.commit(await readCommit(request));
      reply({});
    } else if (request.method === 'DELETE' && path === '') {
      await output.discard();
      reply({});
    } else {
      refuse(response, 405, 'not a way to write the output');
    }
  }

  function refuse(response: ServerResponse, status: number, why: string): void {
    response.writeHead(status, {
      ...headers,
      'Content-Type': 'text/plain; charset=utf-8',
      Connection: 'close',
    });
    response.end(why);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((thrown: unknown) => {
      if (response.headersSent) {
        response.destroy();
        return;
      }
      const { code, message } = errorReport(thrown);
      const status = thrown instanceof AmalgamError ? 409 : thrown instanceof URIError ? 400 : 500;
      refuse(response, code === 'StorageFull' ? 507 : status, message);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url: `http://${host}/`,
    async serveFolder(folder) {
      const { files, dangling } = await listFolder(folder);
      folders.push(files);
      return { url: `${secret}/models/${folders.length - 1}/`, dangling };
    },
    receiveOutput(folder) {
      output = folder;
      return `${secret}/output`;
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function readCommit(request: IncomingMessage): Promise<{ path: string; size: number }[]> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += (chunk as Buffer).length;
    if (length > MAX_COMMIT_BYTES) throw new AmalgamError('Usage', 'The list of files is too long.', '');
    chunks.push(chunk as Buffer);
  }
  const { files } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as {
    files: { path: string; size: number }[];
  };
  return files;
}
