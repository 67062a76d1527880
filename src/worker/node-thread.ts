/** A thread in Node (src/host/threads.ts). */
import { parentPort, workerData } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';
import { diskDirectory, diskSource, openFile } from '../host/node/storage';
import { threadCalls } from './all-kernels';

// where downloads are read from
const storage = { getDirectory: async () => diskDirectory(workerData as string) };
Object.defineProperty(globalThis, 'navigator', { value: { storage }, configurable: true });

const disk = {
  source: (origin: Parameters<typeof diskSource>[0] & { identity: string }) =>
    diskSource(origin, origin.identity),
  file: ({ location }: { location: string }) => openFile(location),
};
Comlink.expose(threadCalls(disk), nodeEndpoint(parentPort!));
