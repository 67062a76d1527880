/** The store in a dedicated worker of a real browser, for its tests: plain calls, and sources that can go wrong. */

import * as Comlink from 'comlink';
import { errorReport } from '../errors';
import { hex } from '../formats/hashes';
import { type ByteSource, bufferSource } from '../sources/byte-source';
import { cleanBlobs, deleteBlob, ensureBlob, listBlobs, type OpenSource, openBlob } from './blobs';

/** Bytes that are a function of their number, so that two workers agree on them. */
function content(byteLength: number, seed: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(byteLength);
  for (let i = 0; i < byteLength; i++) bytes[i] = Math.imul(i + seed, 2654435761) >>> 24;
  return bytes;
}

const readers = new Map<string, OpenSource>();
let controller = new AbortController();
let asked = 0;

/** Whoever asks for this lock of the worker's name gets it when the worker is gone. */
const alive = new Promise<void>((granted) => {
  void navigator.locks.request(self.name, () => {
    granted();
    return new Promise(() => {});
  });
});

const rig = {
  sha256: (byteLength: number, seed: number) => sha256Hex(content(byteLength, seed)),

  /**
   * Downloads content(byteLength, seed); only the first `most` pieces arrive, the others are waited for until it is
   * canceled. Returns the code of what went wrong, else `ok`.
   */
  async ensure(byteLength: number, seed: number, pieceBytes: number, most = Infinity): Promise<string> {
    await alive;
    let arrived = 0;
    const bytes = content(byteLength, seed);
    const memory = bufferSource(bytes);
    const source: ByteSource = {
      byteLength,
      async read(begin, end, signal) {
        asked++;
        if (arrived++ >= most) {
          await new Promise((_, reject) => {
            signal?.addEventListener('abort', () => reject(signal.reason));
          });
        }
        return memory.read(begin, end, signal);
      },
    };
    controller = new AbortController();
    const sizes = { piece: pieceBytes, request: 4 * pieceBytes };
    const wanted = { sha256: await sha256Hex(bytes), byteLength, name: `seed ${seed}`, source };
    return attempt(() => ensureBlob(wanted, { signal: controller.signal }, sizes));
  },
  cancel: () => controller.abort(),
  /** Pieces asked of sources since the last call. */
  asked() {
    const count = asked;
    asked = 0;
    return count;
  },

  open: (sha256: string) =>
    attempt(async () => {
      readers.set(sha256, await openBlob(sha256));
    }),
  /** Whether bytes `[begin, end)` of an open blob are those of content(…, seed). */
  matches: (sha256: string, seed: number, begin: number, end: number) =>
    attempt(async () => {
      const found = await readers.get(sha256)?.read(begin, end);
      const expected = content(end, seed).subarray(begin);
      if (!found?.every((byte, i) => byte === expected[i])) throw new Error('other bytes');
    }),
  close: (sha256: string) => readers.get(sha256)?.close(),

  list: listBlobs,
  clean: cleanBlobs,
  delete: (sha256: string) => attempt(() => deleteBlob(sha256)),

  /** Replaces one method of every synchronous handle in this worker by one that returns `result` and does nothing. */
  breakHandles(method: 'write' | 'truncate', result: number) {
    Object.assign(FileSystemSyncAccessHandle.prototype, { [method]: () => result });
  },
};

export type StoreRig = typeof rig;

async function attempt(action: () => Promise<void>): Promise<string> {
  try {
    await action();
    return 'ok';
  } catch (thrown) {
    const { code, message } = errorReport(thrown);
    return code === 'Internal' ? message : code;
  }
}

Comlink.expose(rig);

async function sha256Hex(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}
