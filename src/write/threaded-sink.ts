/** A file of the browser's own storage that a thread of its own writes, while this one reads and hands out tiles. */
import * as Comlink from 'comlink';
import { AmalgamError } from '../errors';
import { startWorker } from '../platform';
import { giveBack } from '../sources/spare-arrays';
import type { FileSink } from './destination';
import type { WritingThread, Written } from './write.worker';
import workerUrl from './write.worker.ts?worker&url';

/** Shorter files are written sooner than a thread is started. */
export const THREAD_FROM = 8 * 2 ** 20;
/** Pieces that may wait for the thread. */
const MOST_WAITING = 4;

interface ThreadedSink extends FileSink {
  /** Ends the thread, with the file as it is. Safe to call twice, and after `close`. */
  letGo(): Promise<void>;
}

/**
 * Goes on with a file after its first `bytes` bytes. A piece is the sink's once it is handed over; that it could not be
 * written shows in a later call, at the latest in `flush` or `close`.
 * @param onClose is told the length of the whole file
 * @throws StorageFull, DestinationFailed, WorkerDied
 */
export async function openThreadedSink(
  files: FileSystemDirectoryHandle,
  path: string,
  bytes: number,
  onClose: (bytes: number) => void,
): Promise<ThreadedSink> {
  const worker = startWorker(workerUrl, 'amalgam-write');
  const thread = Comlink.wrap<WritingThread>(worker);
  let at = bytes;
  let failed: AmalgamError | undefined;
  /** Calls that the thread has not answered. */
  const waiting = new Set<() => void>();
  const fail = (error: AmalgamError) => {
    failed ??= error;
    for (const wake of waiting) wake();
  };
  worker.addEventListener('error', ({ message }) =>
    fail(
      new AmalgamError(
        'WorkerDied',
        `The thread that writes ${path} stopped: ${message || 'it could not be started'}.`,
        'Resume the merge; if memory is short, close other tabs.',
      ),
    ),
  );
  const answered = (request: Promise<Written>): Promise<void> =>
    new Promise<void>((resolve) => {
      waiting.add(resolve);
      const done = () => {
        waiting.delete(resolve);
        resolve();
      };
      request.then(({ error, spent }) => {
        if (spent) giveBack(spent);
        if (error) fail(new AmalgamError(error.code, error.message, error.hint));
        done();
      }, done);
    });
  const orFailed = async (request: Promise<Written>): Promise<void> => {
    await answered(request);
    if (failed) throw failed;
  };
  let isOver = false;
  const letGo = async () => {
    if (isOver) return;
    isOver = true;
    if (failed?.code !== 'WorkerDied') await thread.letGo();
    worker.terminate();
  };

  const pieces: Promise<void>[] = [];
  try {
    await orFailed(thread.open(files, path, bytes));
  } catch (thrown) {
    await letGo();
    throw thrown;
  }
  return {
    async write(piece) {
      while (pieces.length >= MOST_WAITING) await pieces.shift();
      if (failed) throw failed;
      at += piece.byteLength;
      pieces.push(answered(thread.write(Comlink.transfer(piece, [piece.buffer]))));
    },
    flush: () => orFailed(thread.flush()),
    async close() {
      try {
        await orFailed(thread.close());
      } finally {
        await letGo();
      }
      onClose(at);
    },
    letGo,
  };
}
