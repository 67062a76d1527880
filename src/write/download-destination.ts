import * as Comlink from 'comlink';
import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import { folderIn, holdLock, removeFrom, startWorker } from '../platform';
import { fileSource } from '../sources/file-source';
import { giveBack } from '../sources/spare-arrays';
import type { Destination, FileSink } from './destination';
import { destinationError, notEmpty, outputName, outputPathParts } from './destination-error';
import {
  FILES_FOLDER,
  findOutput,
  JOURNAL_FILE,
  type OutputFile,
  outputBusy,
  outputLock,
  outputsRoot,
  RECORD_FILE,
  readOutput,
  removeOutput,
} from './finished-outputs';
import { findFile, openHandle, openJournal, opfsSink } from './opfs-sink';
import type { WritingThread, Written } from './write.worker';
import workerUrl from './write.worker?worker&url';

// A file of the browser's own storage that a thread of its own writes, while this one reads and hands out tiles.

/** Shorter files are written sooner than a thread is started. */
const THREAD_FROM = 8 * 2 ** 20;
/** Pieces that may wait for the thread. */
const MOST_WAITING = 4;

interface ThreadedSink extends FileSink {
  /** Ends the thread, with the file as it is. Safe to call twice, and after `close`. */
  letGo(): Promise<void>;
}

/**
 * Goes on with a file after its first `bytes` bytes. A piece is the sink's once it is handed over; that it could not be
 * written shows in a later call, at the latest in `flush` or `close`.
 * @param onClose called with the length of the whole file
 * @throws StorageFull, DestinationFailed, WorkerDied
 */
async function openThreadedSink(
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

/** Grows to the size of an output before it is begun, and goes at once. */
const ROOM_FILE = 'room';

/**
 * An output in the browser's own storage, to be downloaded from there. For browsers without a folder picker. Runs in a
 * dedicated worker only: sync access handles exist nowhere else.
 *
 * @param resume retains the remains of an interrupted merge of the same name; else they are removed first
 * @throws DestinationNotEmpty when a complete output of that name waits, Busy when another merge is writing it,
 *   StorageUnavailable, UnsafePath
 */
export async function openDownloadDestination(name: string, resume = false): Promise<Destination> {
  outputName(name);
  const release = await holdLock(outputLock(name));
  if (!release) throw outputBusy(name);
  try {
    const existing = await findOutput(name);
    if (existing && (await readOutput(existing)).complete) throw notEmpty(name);
    if (!resume) await removeOutput(name);
    const folder = await folderIn(await outputsRoot(), name, true);
    const files = await folderIn(folder, FILES_FOLDER, true);
    return downloadDestination(name, folder, files, release);
  } catch (thrown) {
    release();
    throw destinationError(thrown, name);
  }
}

function downloadDestination(
  name: string,
  folder: FileSystemDirectoryHandle,
  files: FileSystemDirectoryHandle,
  release: () => void,
): Destination {
  const written = new Map<string, OutputFile>();
  /** Releases every file that is not closed, unchanged. */
  const open = new Set<() => unknown>();
  const journal = openJournal(folder, JOURNAL_FILE, name);
  let isOver = false;

  const begin = async (path: string, bytes: number, length = 0): Promise<FileSink> => {
    const parts = outputPathParts(path);
    const note = (size: number) => written.set(path, { path, bytes: size });
    try {
      if (length >= THREAD_FROM && goesToThreads(files)) {
        const sink = await openThreadedSink(files, path, bytes, (size) => {
          open.delete(sink.letGo);
          note(size);
        });
        open.add(sink.letGo);
        return sink;
      }
      const handle = await openHandle(files, parts);
      const letGo = () => handle.close();
      open.add(letGo);
      return opfsSink(path, handle, bytes, (size) => {
        open.delete(letGo);
        note(size);
      });
    } catch (thrown) {
      throw destinationError(thrown, path);
    }
  };
  const letGo = async () => {
    await Promise.all([...open].map((close) => close()));
    open.clear();
    journal.close();
  };

  return {
    create: (path, length) => begin(path, 0, length),
    async requireRoom(bytes) {
      try {
        // an empty file of that size counts against the quota, and takes no space on the disk
        const handle = await openHandle(folder, [ROOM_FILE]);
        try {
          await opfsSink(`${name}, which needs ${counted(bytes, 'byte')}`, handle, bytes, () => {}).close();
        } finally {
          handle.close();
          await removeFrom(folder, ROOM_FILE);
        }
      } catch (thrown) {
        throw destinationError(thrown, name);
      }
    },
    async commit() {
      if (open.size > 0) throw destinationError('a file was not finished', name);
      try {
        const handle = await openHandle(folder, [RECORD_FILE]);
        const record = opfsSink(name, handle, 0, () => {});
        await record.write(new TextEncoder().encode(JSON.stringify({ files: [...written.values()] })));
        await record.close();
      } catch (thrown) {
        throw destinationError(thrown, name);
      }
      isOver = true;
      await letGo();
      await journal.remove();
      release();
    },
    async discard() {
      if (isOver) return;
      await letGo();
      await removeOutput(name);
      isOver = true;
      release();
    },
    async left(path) {
      const file = await findFile(files, outputPathParts(path));
      return file && fileSource(file, path);
    },
    remains: {
      readJournal: () => journal.read(),
      appendJournal: (at, line) => journal.append(at, line),
      async adopt(path, bytes) {
        written.set(path, { path, bytes });
      },
      reopen: begin,
      async keep() {
        if (isOver) return;
        isOver = true;
        await letGo();
        release();
      },
    },
  };
}

/** Whether another thread can have the folder: one in memory, or of Node, is in this thread alone. */
function goesToThreads(folder: FileSystemDirectoryHandle): boolean {
  return typeof FileSystemDirectoryHandle === 'function' && folder instanceof FileSystemDirectoryHandle;
}
