/** A sha256 beside the work: a file of gigabytes is hashed in a thread of its own while it is written. */

import { AmalgamError } from '../errors';
import { trustedWorkerUrl } from '../trusted-worker-url';
import type { Sha256 } from './sha256';
import workerUrl from './sha256.worker.ts?worker&url';
import type { HashRequest } from './sha256-request';
import { giveBack, spareArray } from './spare-arrays';

type HashAnswer = { spent: ArrayBuffer } | { digest: string };

export interface Sha256Thread {
  /** Takes a copy of the bytes. Resolves when there is room for more. @throws WorkerDied */
  update(bytes: Uint8Array): Promise<void>;
  /** Lower-case hex of all bytes so far; more may follow, also before it is there. @throws WorkerDied */
  digest(): Promise<string>;
  close(): void;
}

/** Fewer bytes are hashed sooner than a thread is started. */
const THREAD_FROM = 16 * 2 ** 20;
/** Bytes that may wait for the thread. */
const MOST_WAITING = 32 * 2 ** 20;

/** Goes on with a hash. Where there are no workers, as in Node, it stays in this thread. */
export function sha256Thread(begun: Sha256): Sha256Thread {
  let thread: Sha256Thread | undefined;
  let taken = 0;
  return {
    async update(bytes) {
      taken += bytes.byteLength;
      if (taken > THREAD_FROM && typeof Worker !== 'undefined') thread ??= startThread(begun.save());
      if (thread) return thread.update(bytes);
      begun.update(bytes);
    },
    digest: async () => (thread ? thread.digest() : (await begun.copy()).digest()),
    close: () => thread?.close(),
  };
}

function startThread(state: Uint8Array<ArrayBuffer>): Sha256Thread {
  const worker = new Worker(trustedWorkerUrl(workerUrl), { type: 'module', name: 'amalgam-sha256' });
  let waiting = 0;
  let died: AmalgamError | undefined;
  /** Called at the next answer: whoever waits looks again. */
  let sleepers: (() => void)[] = [];
  const wake = () => {
    const all = sleepers;
    sleepers = [];
    for (const look of all) look();
  };
  /** Digests that have come, by their number. */
  const digests: string[] = [];
  let asked = 0;
  const post = (request: HashRequest, transfer: Transferable[] = []) => worker.postMessage(request, transfer);
  worker.onmessage = ({ data }: MessageEvent<HashAnswer>) => {
    if ('digest' in data) digests.push(data.digest);
    else {
      waiting -= data.spent.byteLength;
      giveBack(data.spent);
    }
    wake();
  };
  worker.onerror = ({ message }) => {
    died = new AmalgamError(
      'WorkerDied',
      `The thread that hashes the output stopped: ${message || 'it could not be started'}.`,
      'Start again; if memory is short, close other tabs.',
    );
    wake();
  };
  const until = async (come: () => boolean) => {
    while (!come() && !died) {
      await new Promise<void>((resolve) => {
        sleepers.push(resolve);
      });
    }
    if (died) throw died;
  };
  post({ state });
  return {
    async update(bytes) {
      await until(() => waiting < MOST_WAITING);
      const copy = spareArray(bytes.byteLength);
      copy.set(bytes);
      waiting += copy.buffer.byteLength;
      post({ bytes: copy }, [copy.buffer]);
    },
    async digest() {
      const number = asked++;
      post({ digest: true });
      await until(() => digests.length > number);
      return digests[number]!;
    },
    close() {
      worker.terminate();
      died ??= new AmalgamError('Cancelled', 'The hash was given up.', 'Start again.');
      wake();
    },
  };
}
