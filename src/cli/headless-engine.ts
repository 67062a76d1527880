import type { AppServer } from './app-server';
import type { StudioPage } from './browser';

/** What carries out the command's calls: this process, or a browser for its WebGPU. */
export interface HeadlessEngine {
  server: Pick<AppServer, 'serveFolder' | 'receiveOutput'>;
  page: Pick<StudioPage, 'call' | 'onProgress'>;
  close(): Promise<void>;
}
