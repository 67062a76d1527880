/**
 * Stands in for `sources/piece-digest` in the command. A gigabyte takes 0.9 s of the thread that hashes it, and Node's
 * `crypto.subtle` takes 0.55 s of the one that asks, for its copies in fresh memory. So threads of our own hash pieces that
 * are copied into memory they share, 0.08 s, and this thread does itself what finds all of that taken.
 */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

/** A piece that lies in the shared memory. */
export interface ToDigest {
  slot: number;
  begin: number;
  length: number;
}

export interface Digested {
  slot: number;
  digest: Uint8Array<ArrayBuffer>;
}

const THREADS = Math.min(4, Math.ceil(availableParallelism() / 4));
const SLOTS = 4;
/** Bytes of a slot: a piece of a tree hash. */
const SLOT_BYTES = 2 ** 21;
/** Shortest piece in bytes that is hashed in a thread; posting a shorter one costs more than hashing it. */
const LEAST_BYTES = 2 ** 17;

interface Waiting {
  resolve(digest: Uint8Array<ArrayBuffer>): void;
  reject(thrown: Error): void;
}

function startHashThread() {
  const shared = new SharedArrayBuffer(SLOTS * SLOT_BYTES);
  const worker = new Worker(new URL('./hash-thread.mjs', import.meta.url), { workerData: shared });
  const free = Array.from({ length: SLOTS }, (_, slot) => slot);
  const waiting = new Map<number, Waiting>();
  worker.on('message', ({ slot, digest }: Digested) => {
    free.push(slot);
    waiting.get(slot)!.resolve(digest);
    waiting.delete(slot);
    if (waiting.size === 0) worker.unref();
  });
  worker.on('error', (thrown) => {
    // the thread is gone: nothing more is laid into its slots
    free.length = 0;
    for (const { reject } of waiting.values()) reject(thrown);
    waiting.clear();
  });
  worker.unref();
  return {
    /** The sha256 of a copy of the bytes, made beside this thread; undefined where no slot is free. */
    digest(piece: Uint8Array): Promise<Uint8Array<ArrayBuffer>> | undefined {
      const slot = free.pop();
      if (slot === undefined) return undefined;
      const begin = slot * SLOT_BYTES;
      new Uint8Array(shared, begin, piece.length).set(piece);
      // idle threads must not keep a finished command alive; threads at work must
      if (waiting.size === 0) worker.ref();
      worker.postMessage({ slot, begin, length: piece.length } satisfies ToDigest);
      return new Promise((resolve, reject) => waiting.set(slot, { resolve, reject }));
    },
  };
}

let threads: ReturnType<typeof startHashThread>[] | undefined;
let next = 0;

export async function pieceDigest(piece: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  if (piece.length >= LEAST_BYTES && piece.length <= SLOT_BYTES) {
    threads ??= Array.from({ length: THREADS }, startHashThread);
    for (let i = 0; i < THREADS; i++) {
      next = (next + 1) % THREADS;
      const answer = threads[next]!.digest(piece);
      if (answer) return answer;
    }
  }
  return new Uint8Array(createHash('sha256').update(piece).digest());
}
