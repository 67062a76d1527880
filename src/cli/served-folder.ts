import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** A file that may be read through the server, and nothing else of the folder may. */
export interface ServedFile {
  /** Relative, forward slashes. */
  path: string;
  size: number;
  /** Where it is on disk. */
  location: string;
}

/**
 * The files below a folder, hidden ones left out. Links to files are followed (a Hub cache keeps its snapshots so),
 * links to folders are not: they can run in circles.
 */
export async function listFolder(folder: string): Promise<Map<string, ServedFile>> {
  const files = new Map<string, ServedFile>();
  const walk = async (inside: string, prefix: string): Promise<void> => {
    for (const entry of await readdir(inside, { withFileTypes: true })) {
      if (entry.name.startsWith('.')) continue;
      const location = join(inside, entry.name);
      const path = prefix + entry.name;
      if (entry.isDirectory()) {
        await walk(location, `${path}/`);
        continue;
      }
      const stats = await stat(location);
      if (stats.isFile()) files.set(path, { path, size: stats.size, location });
    }
  };
  await walk(folder, '');
  return files;
}

/**
 * Answers a GET or HEAD for a file, a part of it when one range is asked for. The length sent is the one in the
 * listing; a file that has changed since cannot pass for the one that was planned with.
 */
export async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: ServedFile,
  headers: Record<string, string>,
): Promise<void> {
  const { size } = await stat(file.location);
  const range = byteRange(request.headers.range, size);
  if (range === 'unsatisfiable') {
    response.writeHead(416, { ...headers, 'Content-Range': `bytes */${size}` }).end();
    return;
  }
  const [begin, end] = range ?? [0, size];
  response.writeHead(range ? 206 : 200, {
    ...headers,
    'Accept-Ranges': 'bytes',
    'Content-Length': end - begin,
    ...(range ? { 'Content-Range': `bytes ${begin}-${end - 1}/${size}` } : {}),
  });
  if (request.method === 'HEAD' || begin === end) {
    response.end();
    return;
  }
  await pipeline(createReadStream(file.location, { start: begin, end: end - 1 }), response);
}

/** The one range asked for as `[begin, end)`; undefined when none is, or a kind of range that we need not know. */
function byteRange(header: string | undefined, size: number): [number, number] | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return undefined;
  const [, first, last] = match;
  const begin = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  return begin < end ? [begin, end] : 'unsatisfiable';
}
