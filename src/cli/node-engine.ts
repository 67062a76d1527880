import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AmalgamError, type ErrorCode } from '../errors';
import { becomeHost } from '../host/node/platform';
import { createSession } from '../worker/session';
import { openServedWith } from '../write/open-destination';
import { diskDestination } from './disk-destination';
import { diskFolder } from './disk-folder';
import { headlessCalls } from './headless';
import type { AnyProgress, Outcome } from './headless-calls';
import type { HeadlessEngine } from './headless-engine';
import type { OutputFolder } from './output-folder';
import { listFolder, type ServedFile } from './served-folder';

/**
 * The worker's session in this process: files by descriptor, kernels in threads, no browser.
 * @param cache takes what is downloaded
 * @param samples folder of the sample family
 */
export async function openNodeEngine(cache: string, samples: string): Promise<HeadlessEngine> {
  const leave = becomeHost(cache);
  const folders = new Map<string, ServedFile[]>();
  let output: OutputFolder | undefined;
  openServedWith(() => diskDestination(output!));
  const session = createSession(async (ref, url) => diskFolder(ref, folders.get(url) ?? []));
  for (const name of await session.calibrationTexts()) {
    await session.addCalibrationText(name, await readFile(join(samples, 'texts', name), 'utf8'));
  }
  let print: (progress: AnyProgress) => void = () => {};
  const calls = headlessCalls(session, (progress) => print(progress));
  return {
    server: {
      async serveFolder(folder) {
        const { files, dangling } = await listFolder(folder);
        folders.set(folder, [...files.values()]);
        return { url: folder, dangling };
      },
      receiveOutput(received) {
        output = received;
        return 'output';
      },
    },
    page: {
      async call(name, ...args) {
        const call = calls[name] as (...all: unknown[]) => Promise<Outcome<never>>;
        const outcome = await call(...args);
        if (!('error' in outcome)) return outcome.value;
        const { code, message, hint } = outcome.error;
        throw new AmalgamError(code as ErrorCode, message, hint);
      },
      async onProgress(given) {
        print = given;
      },
    },
    close: leave,
  };
}
