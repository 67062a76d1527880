import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startForeignTextWith } from '../foreign/foreign-text';
import { becomeHost, offerWebGpu } from '../host/node/platform';
import { startForeignText, startThread } from '../host/node/start-thread';
import { diskSource, openFile } from '../host/node/storage';
import { startThreadsWith } from '../host/threads';
import type { BackendChoice } from '../reports/backend';
import type { DestinationSpec } from '../reports/job';
import { createCalls, type WorkerCalls } from '../worker/calls';
import type { Destination, FileSink } from '../write/destination';
import { openDiskWith } from '../write/opened-destination';
import { writeAt } from '../write/opfs-sink';
import { diskFolder, type ListedFile, listFolder } from './folder-listing';
import { type CachedModel, checkSnapshot } from './model-lookup';
import type { OutputFolder } from './output-folder';

/** Worker of the command, in this process. */
export interface CommandWorker {
  calls: WorkerCalls;
  /**
   * Lists a model's folder, so that `openDisk` finds it.
   * @param snapshot where on the Hub the folder is from
   * @returns the links in it that lead to nothing
   */
  listModel(folder: string, snapshot?: CachedModel): Promise<string[]>;
  /** Makes the output folder the destination of the next job. @param name of the result in its model card */
  writeTo(output: OutputFolder, name?: string): Extract<DestinationSpec, { kind: 'disk' }>;
  close(): Promise<void>;
}

/**
 * The worker's session in this process: files by descriptor, kernels in threads or on the graphics device.
 * @param cache takes what is downloaded
 * @param samples folder of the sample family
 * @throws AmalgamError `NoWebGpu` where `webgpu` is asked for and is not installed
 */
export async function openNodeEngine(
  cache: string,
  samples: string,
  engine: BackendChoice = 'auto',
): Promise<CommandWorker> {
  const leave = await becomeHost(cache);
  if (engine === 'webgpu') {
    await offerWebGpu().catch(async (thrown: unknown) => {
      await leave();
      throw thrown;
    });
  }
  startThreadsWith(() => startThread(cache));
  startForeignTextWith(startForeignText);
  const folders = new Map<string, { files: ListedFile[]; snapshot?: CachedModel }>();
  let output: OutputFolder | undefined;
  openDiskWith(() => diskDestination(output!));
  const calls = createCalls((ref, folder) => {
    const { files = [], snapshot } = folders.get(folder) ?? {};
    return diskFolder(ref, files, snapshot);
  });
  for (const name of await calls.calibrationTexts()) {
    await calls.addCalibrationText(name, await readFile(join(samples, 'texts', name), 'utf8'));
  }
  return {
    calls,
    async listModel(folder, snapshot) {
      const { files, dangling } = await listFolder(folder);
      if (snapshot) await checkSnapshot(files.values());
      folders.set(folder, { files: [...files.values()], ...(snapshot ? { snapshot } : {}) });
      return dangling;
    },
    writeTo(begun, name) {
      output = begun;
      return { kind: 'disk', ...(name === undefined ? {} : { name }) };
    },
    async close() {
      try {
        await calls.interrupted(); // cleaning of the cache, which a short command may overtake
      } finally {
        await leave();
      }
    },
  };
}

/** The output folder of the command as a destination of the merge. */
export function diskDestination(output: OutputFolder): Destination {
  const files: { path: string; size: number }[] = [];
  const open = new Set<FileSystemSyncAccessHandle>();
  const begin = async (path: string, kept: number): Promise<FileSink> => {
    const location = await output.begin(path, kept);
    const file = openFile(location);
    open.add(file);
    return {
      place: { kind: 'disk', location },
      write: async (bytes, at) => writeAt(path, file, bytes, at),
      async close(_, size) {
        open.delete(file);
        file.close();
        files.push({ path, size });
      },
    };
  };
  const letGo = () => {
    for (const file of open) file.close();
    open.clear();
  };
  return {
    create: (path) => begin(path, 0),
    commit: () => output.commit(files),
    discard() {
      letGo();
      return output.discard();
    },
    requireRoom: (bytes) => output.checkRoom(bytes),
    async left(path) {
      const found = await output.find(path);
      return found && diskSource({ location: found.location, byteLength: found.size, name: path });
    },
    remains: {
      async readJournal() {
        const found = await output.find('journal');
        if (!found) return new Uint8Array(0);
        const source = diskSource({ location: found.location, byteLength: found.size, name: 'the journal' });
        try {
          return await source.read(0, found.size);
        } finally {
          source.close();
        }
      },
      appendJournal: (at, line) => output.appendJournal(at, line),
      async adopt(path, bytes) {
        files.push({ path, size: bytes });
      },
      reopen: begin,
      async keep() {
        letGo();
        output.keep();
      },
    },
  };
}
