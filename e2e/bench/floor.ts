/**
 * The floor: the same bytes read and written through the same storage, with nothing done to them; and what one thread
 * does of products.
 */
import type { Browser } from 'puppeteer-core';
import { compileKernels } from '../../assembly/vite-plugin';

/** Runs in a dedicated worker of the studio's origin. Reads and writes as the studio does, in pieces of 8 MiB. */
const COPY_WORKER = `
const job = async ({ blobs, bytes }) => {
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
  output.flush();
  output.close();
  const end = performance.now();
  for (const input of inputs) input.close();
  await root.removeEntry('bench-copy');
  return (end - begin) / 1000;
};`;

/** Runs there too: a product of matrices on one thread; the best of several. */
const PRODUCTS_WORKER = `
const best = (times, act) => {
  let least = Infinity;
  for (let i = 0; i < times; i++) {
    const begin = performance.now();
    act();
    least = Math.min(least, performance.now() - begin);
  }
  return least / 1000;
};
const job = async ({ kernels }) => {
  const memory = new WebAssembly.Memory({ initial: 1024, maximum: 65_536 });
  const bytes = Uint8Array.from(atob(kernels), (c) => c.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(bytes, { env: { memory } });
  const [rows, inputs, outputs, scratch, w] = [256, 896, 4864, 64, 65536];
  const x = w + inputs * outputs * 4;
  const y = x + rows * inputs * 4;
  new Float32Array(memory.buffer, w, (inputs * outputs + rows * inputs)).fill(0.5);
  const product = () => instance.exports.matmulBlock(
    w, 0, inputs, outputs, x, inputs * 4, rows, 0, y, outputs * 4, 0, 1, scratch);
  return (2 * rows * inputs * outputs) / best(10, product);
};`;

const PAGE = 'bench-floor.html';

/** Runs a worker on a page of the studio's origin, without the studio's script policy. @param source its script, which has a function `job` */
async function inWorker<T>(browser: Browser, url: string, source: string, given: unknown): Promise<T> {
  const page = await browser.newPage();
  try {
    await page.setRequestInterception(true);
    page.on('request', (request) =>
      request.url() === `${url}${PAGE}`
        ? request.respond({ contentType: 'text/html', body: '<!doctype html><title>floor</title>' })
        : request.continue(),
    );
    await page.goto(`${url}${PAGE}`);
    return await page.evaluate(
      (script, request) =>
        new Promise<T>((resolve, reject) => {
          const answer = `onmessage = ({ data }) => job(data).then(
            (done) => postMessage({ done }), (thrown) => postMessage({ failed: String(thrown) }));`;
          const worker = new Worker(
            URL.createObjectURL(new Blob([script, answer], { type: 'text/javascript' })),
          );
          worker.onmessage = ({ data: { done, failed } }) =>
            failed === undefined ? resolve(done) : reject(new Error(failed));
          worker.onerror = (event) => reject(new Error(event.message));
          worker.postMessage(request);
        }),
      source,
      given,
    );
  } finally {
    await page.close();
  }
}

/**
 * Seconds to read the blobs once and to write `bytes` bytes, flushed.
 * @param url the studio's address
 */
export function copyFloor(
  browser: Browser,
  url: string,
  blobs: readonly string[],
  bytes: number,
): Promise<number> {
  return inWorker(browser, url, COPY_WORKER, { blobs, bytes });
}

/** Floating point operations a second of the studio's own product of matrices on one thread, 256 rows by 896 × 4864 in f32. */
export async function measureProducts(browser: Browser, url: string): Promise<number> {
  return inWorker(browser, url, PRODUCTS_WORKER, { kernels: (await compileKernels()).wasm });
}
