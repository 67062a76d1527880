import type { WorkerCalls } from '../worker/calls';
import type { AppServer } from './app-server';
import type { CachedModel } from './hub-cache';

/** What carries out the command's calls: this process, or a browser for its WebGPU. */
export interface CommandWorker {
  server: Pick<AppServer, 'receiveOutput'> & {
    /** @param snapshot where on the Hub the folder is from */
    serveFolder(folder: string, snapshot?: CachedModel): ReturnType<AppServer['serveFolder']>;
  };
  calls: WorkerCalls;
  close(): Promise<void>;
}
