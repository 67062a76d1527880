import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startForeignTextWith } from '../foreign/foreign-text';
import { becomeHost } from '../host/node/platform';
import { startForeignText } from '../host/node/start-foreign-text';
import { startThread } from '../host/node/start-thread';
import { startThreadsWith } from '../host/threads';
import { createCalls } from '../worker/calls';
import { openServedWith } from '../write/opened-destination';
import type { CommandWorker } from './command-worker';
import { diskDestination } from './disk-destination';
import { diskFolder } from './disk-folder';
import { type CachedModel, checkSnapshot } from './hub-cache';
import type { OutputFolder } from './output-folder';
import { listFolder, type ServedFile } from './served-folder';

/**
 * The worker's session in this process: files by descriptor, kernels in threads, no browser.
 * @param cache takes what is downloaded
 * @param samples folder of the sample family
 */
export async function openNodeEngine(cache: string, samples: string): Promise<CommandWorker> {
  const leave = await becomeHost(cache);
  startThreadsWith(startThread);
  startForeignTextWith(startForeignText);
  const folders = new Map<string, { files: ServedFile[]; snapshot?: CachedModel }>();
  let output: OutputFolder | undefined;
  openServedWith(() => diskDestination(output!));
  const calls = createCalls(async (ref, url) => {
    const { files = [], snapshot } = folders.get(url) ?? {};
    return diskFolder(ref, files, snapshot);
  });
  for (const name of await calls.calibrationTexts()) {
    await calls.addCalibrationText(name, await readFile(join(samples, 'texts', name), 'utf8'));
  }
  return {
    server: {
      async serveFolder(folder, snapshot) {
        const { files, dangling } = await listFolder(folder);
        if (snapshot) await checkSnapshot(files.values());
        folders.set(folder, { files: [...files.values()], ...(snapshot ? { snapshot } : {}) });
        return { url: folder, dangling };
      },
      receiveOutput(received) {
        output = received;
        return 'output';
      },
    },
    calls,
    close: leave,
  };
}
