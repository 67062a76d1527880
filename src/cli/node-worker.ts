import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startForeignTextWith } from '../foreign/foreign-text';
import { becomeHost } from '../host/node/platform';
import { startForeignText } from '../host/node/start-foreign-text';
import { startThread } from '../host/node/start-thread';
import { offerWebGpu } from '../host/node/webgpu';
import { startThreadsWith } from '../host/threads';
import type { BackendChoice } from '../reports/backend';
import type { DestinationSpec } from '../reports/job';
import { createCalls, type WorkerCalls } from '../worker/calls';
import { openDiskWith } from '../write/opened-destination';
import { diskDestination } from './disk-destination';
import { diskFolder } from './disk-folder';
import { type ListedFile, listFolder } from './folder-listing';
import { type CachedModel, checkSnapshot } from './hub-cache';
import type { OutputFolder } from './output-folder';

/** What carries out the command's calls. */
export interface CommandWorker {
  calls: WorkerCalls;
  /**
   * Lists a model's folder, so that `openDisk` finds it.
   * @param snapshot where on the Hub the folder is from
   * @returns the links in it that lead to nothing
   */
  listModel(folder: string, snapshot?: CachedModel): Promise<string[]>;
  /** Has the next job write to the output folder. @param name what the result calls itself */
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
  startThreadsWith(startThread);
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
