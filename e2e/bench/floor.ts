/** The floor: the same bytes read and written through the same storage, with nothing done to them. */
import type { BrowserContext } from 'playwright';

/** Runs in a dedicated worker of the studio's origin. Reads and writes as the studio does, in pieces of 8 MiB. */
const WORKER = `
onmessage = async ({ data: { blobs, bytes } }) => {
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle('blobs', { create: true });
  const inputs = [];
  for (const sha256 of blobs) {
    const file = await (await folder.getDirectoryHandle(sha256)).getFileHandle('data');
    inputs.push(await file.createSyncAccessHandle({ mode: 'read-only' }));
  }
  const target = await root.getFileHandle('bench-copy', { create: true });
  const piece = new Uint8Array(8 * 2 ** 20);
  const begin = performance.now();
  const output = await target.createSyncAccessHandle();
  output.truncate(0);
  let written = 0;
  const longest = Math.max(bytes, ...inputs.map((input) => input.getSize()));
  for (let at = 0; at < longest; at += piece.length) {
    for (const input of inputs) if (at < input.getSize()) input.read(piece, { at });
    if (written < bytes) written += output.write(piece.subarray(0, Math.min(piece.length, bytes - written)), { at: written });
  }
  const read = performance.now();
  output.flush();
  output.close();
  const end = performance.now();
  for (const input of inputs) input.close();
  await root.removeEntry('bench-copy');
  postMessage({ seconds: (end - begin) / 1000, flush: (end - read) / 1000 });
};`;

const PATH = 'bench-floor.js';

/**
 * Seconds to read the blobs once and to write `bytes` bytes, flushed.
 * @param url the studio's address
 */
export async function copyFloor(
  context: BrowserContext,
  url: string,
  blobs: readonly string[],
  bytes: number,
): Promise<number> {
  const page = await context.newPage();
  try {
    await page.route(`${url}${PATH}`, (route) =>
      route.fulfill({ contentType: 'text/javascript', body: WORKER }),
    );
    // a page of the origin without the studio's script policy: only the floor's worker runs there
    await page.route(`${url}bench-floor.html`, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>floor</title>' }),
    );
    await page.goto(`${url}bench-floor.html`);
    const result = await page.evaluate(
      ([path, job]) =>
        new Promise<{ seconds: number }>((resolve, reject) => {
          const worker = new Worker(path as string);
          worker.onmessage = ({ data }) => resolve(data);
          worker.onerror = (event) => reject(new Error(event.message));
          worker.postMessage(job);
        }),
      [PATH, { blobs: [...blobs], bytes }] as const,
    );
    return result.seconds;
  } finally {
    await page.close();
  }
}
