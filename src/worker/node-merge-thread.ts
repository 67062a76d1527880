/** A thread of a merge in Node. */
import { parentPort, workerData } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';
import { diskDirectory, diskSource, openFile } from '../host/node/storage';
import { serveMergeThread } from '../merge/run/serve-thread';

// where downloads are read from
const storage = { getDirectory: async () => diskDirectory(workerData as string) };
Object.defineProperty(globalThis, 'navigator', { value: { storage }, configurable: true });

const disk = {
  source: (origin: Parameters<typeof diskSource>[0] & { identity: string }) =>
    diskSource(origin, origin.identity),
  file: ({ location }: { location: string }) => openFile(location),
};
Comlink.expose(serveMergeThread(disk), nodeEndpoint(parentPort!));
