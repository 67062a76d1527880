import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import threads, { type Worker, type WorkerOptions } from 'node:worker_threads';
import { transformWithOxc } from 'vite';
import { afterAll, expect, it } from 'vitest';
import { pieceDigest } from './piece-digest';

const started: Worker[] = [];

/** The thread as the command has it: a file of its own, of plain JavaScript. */
const file = 'src/host/node/hash-thread.ts';
const { code } = await transformWithOxc(readFileSync(file, 'utf8'), file);
const original = threads.Worker;
threads.Worker = class extends original {
  constructor(_: string | URL, options?: WorkerOptions) {
    super(new URL(`data:text/javascript,${encodeURIComponent(code)}`), options);
    started.push(this);
  }
};
syncBuiltinESMExports();
afterAll(() => {
  threads.Worker = original;
  syncBuiltinESMExports();
});

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

it('is the sha256 of what a piece held when it was handed over, however many are under way', async () => {
  // more pieces than there are slots, of lengths around what is told to a thread, in memory that is used again at once
  const lengths = Array.from(
    { length: 40 },
    (_, i) => [2 ** 21, 2 ** 17, 2 ** 17 - 1, 2 ** 21 + 1, 0][i % 5]!,
  );
  const memory = new Uint8Array(2 ** 21 + 1);
  const wanted: string[] = [];
  const found: Promise<Uint8Array>[] = [];
  for (const length of lengths) {
    const piece = memory.subarray(0, length);
    piece.set(randomBytes(length));
    wanted.push(sha256(piece));
    found.push(pieceDigest(piece));
    piece.fill(0);
  }
  const digests = (await Promise.all(found)).map((digest) => Buffer.from(digest).toString('hex'));
  expect(digests).toEqual(wanted);
});

it('what waits for a thread that dies fails, and what comes later is hashed here', async () => {
  const piece = new Uint8Array(2 ** 20).fill(7);
  await pieceDigest(piece);
  const died = started.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
  // no message that it knows: it throws
  for (const worker of started) worker.postMessage(null);
  const lost = started.map(() => pieceDigest(piece));
  for (const { status } of await Promise.allSettled(lost)) expect(status).toBe('rejected');
  await Promise.all(died);
  const later = await Promise.all(Array.from({ length: 9 }, () => pieceDigest(piece)));
  for (const digest of later) expect(Buffer.from(digest).toString('hex')).toBe(sha256(piece));
});
