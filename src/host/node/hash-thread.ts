/** A thread of piece-digest: answers the sha256 of what was laid into the memory that it shares. */
import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import type { Digested, ToDigest } from './piece-digest';

const shared = workerData as SharedArrayBuffer;

parentPort!.on('message', ({ slot, begin, length }: ToDigest) => {
  const digest = createHash('sha256')
    .update(new Uint8Array(shared, begin, length))
    .digest();
  parentPort!.postMessage({ slot, digest: Uint8Array.from(digest) } satisfies Digested);
});
