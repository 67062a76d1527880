import { counted } from '../formats/quantity';
import { fileBelow, folderIn, holdLock, removeFrom, sharedAccess } from '../platform';
import { fileSource } from '../sources/file-source';
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
  const open = new Set<() => void>();
  const journal = openJournal(folder, JOURNAL_FILE, name);
  let isOver = false;

  const begin = async (path: string, bytes: number): Promise<FileSink> => {
    try {
      const file = await fileBelow(files, outputPathParts(path), true);
      const { handle, isShared } = await sharedAccess(file);
      const letGo = () => handle.close();
      open.add(letGo);
      const sink = opfsSink(path, handle, bytes, (size) => {
        open.delete(letGo);
        written.set(path, { path, bytes: size });
      });
      return isShared ? { ...sink, place: { kind: 'opfs', file } } : sink;
    } catch (thrown) {
      throw destinationError(thrown, path);
    }
  };
  const letGo = async () => {
    for (const close of open) close();
    open.clear();
    journal.close();
  };

  return {
    create: (path) => begin(path, 0),
    async requireRoom(bytes) {
      try {
        // an empty file of that size counts against the quota, and takes no space on the disk
        const handle = await openHandle(folder, [ROOM_FILE]);
        try {
          await opfsSink(`${name}, which needs ${counted(bytes, 'byte')}`, handle, bytes).close([], bytes);
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
        const record = opfsSink(name, handle, 0);
        const text = new TextEncoder().encode(JSON.stringify({ files: [...written.values()] }));
        await record.write(text, 0);
        await record.close([], text.byteLength);
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
