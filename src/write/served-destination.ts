import { AmalgamError } from '../errors';
import type { ByteSource } from '../sources/byte-source';
import type { Destination, FileSink } from './destination';
import { destinationError, outputPathParts } from './destination-error';

/** Largest body of one request. */
const PIECE_BYTES = 16 * 2 ** 20;

/**
 * An output folder that the headless command's server keeps on this page's own origin: `PUT url/path?offset=n` appends a
 * piece and answers `{ "size": bytes so far }`, `POST url/commit` with `{ "files": [{ "path", "size" }] }` makes the
 * folder appear under its name, `DELETE url` removes what was sent. `GET url/path` reads what an interrupted run left,
 * `GET url` and `PUT url?offset=n` its journal; a piece that does not begin at the end of a file cuts off what is there.
 *
 * @throws DestinationFailed when `url` is not on this page's origin
 */
export function openServedDestination(url: string): Destination {
  const base = new URL(url, location.href);
  if (base.origin !== location.origin) {
    throw destinationError('it is not on this page’s own server', base.href);
  }
  const address = base.href.replace(/\/$/, '');
  const files: { path: string; size: number }[] = [];
  let isOver = false;

  const addressOf = (path: string) => `${address}/${outputPathParts(path).map(encodeURIComponent).join('/')}`;

  async function begin(path: string, bytes: number): Promise<FileSink> {
    const target = addressOf(path);
    const file = { path, size: bytes };
    const put = async (piece: Uint8Array<ArrayBuffer>): Promise<void> => {
      const reply = await request(`${target}?offset=${file.size}`, { method: 'PUT', body: piece }, path);
      const { size } = (await reply.json()) as { size: number };
      file.size += piece.byteLength;
      if (size !== file.size)
        throw destinationError(`it has ${size} bytes after ${file.size} were sent`, path);
    };
    await put(new Uint8Array(0));
    return {
      async write(bytes) {
        for (let begin = 0; begin < bytes.byteLength; begin += PIECE_BYTES) {
          await put(bytes.subarray(begin, begin + PIECE_BYTES));
        }
      },
      async close() {
        files.push(file);
      },
    };
  }

  return {
    create: (path) => begin(path, 0),
    async commit() {
      const body = JSON.stringify({ files });
      await request(`${address}/commit`, { method: 'POST', body }, 'the output folder');
      isOver = true;
    },
    async discard() {
      if (isOver) return;
      await request(address, { method: 'DELETE' }, 'the output folder');
      isOver = true;
    },
    left: (path) => leftSource(addressOf(path), path),
    remains: {
      async readJournal() {
        const reply = await request(address, {}, 'the journal');
        return new Uint8Array(await reply.arrayBuffer());
      },
      async appendJournal(at, line) {
        await request(`${address}?offset=${at}`, { method: 'PUT', body: line }, 'the journal');
      },
      async adopt(path, bytes) {
        files.push({ path, size: bytes });
      },
      reopen: begin,
      async keep() {
        isOver = true;
      },
    },
  };
}

/** What the server has of a file. */
async function leftSource(url: string, path: string): Promise<ByteSource | undefined> {
  const head = await fetch(url, { method: 'HEAD' }).catch((thrown: unknown) => {
    throw destinationError(thrown, path);
  });
  if (head.status === 404) return undefined;
  return {
    byteLength: Number(head.headers.get('Content-Length')),
    async read(begin, end, signal) {
      const headers = { Range: `bytes=${begin}-${end - 1}` };
      const reply = await request(url, { headers, ...(signal ? { signal } : {}) }, path);
      return new Uint8Array(await reply.arrayBuffer());
    },
  };
}

/** @throws the server's own words as `DestinationFailed` or whatever code it names. */
async function request(url: string, init: RequestInit, what: string): Promise<Response> {
  let reply: Response;
  try {
    reply = await fetch(url, init);
  } catch (thrown) {
    throw destinationError(thrown, what);
  }
  if (reply.ok) return reply;
  const text = await reply.text();
  throw new AmalgamError(
    reply.status === 507 ? 'StorageFull' : 'DestinationFailed',
    `${what} could not be written: ${text || reply.statusText}.`,
    'Check the free space and the permissions of the output folder.',
  );
}
