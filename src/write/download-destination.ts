import type { Destination, FileSink } from './destination';
import {
  destinationError,
  notEmpty,
  outputName,
  outputPathParts,
  shortFile,
  storageFull,
} from './destination-error';
import {
  FILES_FOLDER,
  findOutput,
  type OutputFile,
  outputBusy,
  outputLock,
  outputsRoot,
  RECORD_FILE,
  readOutput,
  removeOutput,
} from './finished-outputs';

/**
 * An output in the browser's own storage, to be downloaded from there. For browsers without a folder picker. Runs in a
 * dedicated worker only: sync access handles exist nowhere else.
 *
 * The remains of a cut-off merge of the same name are removed first.
 *
 * @throws DestinationNotEmpty when a complete output of that name waits, Busy when another merge is writing it,
 *   StorageUnavailable, UnsafePath
 */
export async function openDownloadDestination(name: string): Promise<Destination> {
  outputName(name);
  const release = await takeOutputLock(name);
  try {
    const existing = await findOutput(name);
    if (existing && (await readOutput(existing)).complete) throw notEmpty(name);
    await removeOutput(name);
    const folder = await (await outputsRoot()).getDirectoryHandle(name, { create: true });
    const files = await folder.getDirectoryHandle(FILES_FOLDER, { create: true });
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
  const written: OutputFile[] = [];
  const open = new Set<FileSystemSyncAccessHandle>();
  let isOver = false;

  return {
    async create(path) {
      const parts = outputPathParts(path);
      const fileName = parts.pop()!;
      try {
        let inside = files;
        for (const part of parts) inside = await inside.getDirectoryHandle(part, { create: true });
        const file = await inside.getFileHandle(fileName, { create: true });
        const handle = await file.createSyncAccessHandle();
        open.add(handle);
        return sink(path, handle, (bytes) => {
          open.delete(handle);
          written.push({ path, bytes });
        });
      } catch (thrown) {
        throw destinationError(thrown, path);
      }
    },
    async commit() {
      if (open.size > 0) throw destinationError('a file was not finished', name);
      try {
        const record = await folder.getFileHandle(RECORD_FILE, { create: true });
        const out = sink(RECORD_FILE, await record.createSyncAccessHandle(), () => {});
        await out.write(new TextEncoder().encode(JSON.stringify({ files: written })));
        await out.close();
      } catch (thrown) {
        throw destinationError(thrown, name);
      }
      isOver = true;
      release();
    },
    async discard() {
      if (isOver) return;
      for (const handle of open) handle.close();
      open.clear();
      await removeOutput(name);
      isOver = true;
      release();
    },
  };
}

/** Every write is checked by its count and by the file's size: a full disk can show in a wrong count alone. */
function sink(path: string, handle: FileSystemSyncAccessHandle, onClose: (bytes: number) => void): FileSink {
  let at = 0;
  handle.truncate(0);
  return {
    async write(bytes) {
      try {
        const count = handle.write(bytes, { at });
        if (count !== bytes.byteLength) throw storageFull(path);
        at += count;
      } catch (thrown) {
        throw destinationError(thrown, path);
      }
    },
    async close() {
      try {
        handle.flush();
        const size = handle.getSize();
        if (size !== at) throw shortFile(path, at, size);
      } catch (thrown) {
        throw destinationError(thrown, path);
      } finally {
        handle.close();
      }
      onClose(at);
    },
  };
}

/** Holds the output's lock until the returned function is called. @throws Busy when somebody else holds it. */
async function takeOutputLock(name: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const held = navigator.locks.request(outputLock(name), { ifAvailable: true }, (lock) => {
      if (!lock) {
        reject(outputBusy(name));
        return;
      }
      return new Promise<void>((release) => resolve(release));
    });
    held.catch(reject);
  });
}
