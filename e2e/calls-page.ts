/** A page beside the studio that hands out the calls of its worker, for tests and measurements that need no screen. */
import type { WorkerCalls } from '../src/worker/calls';
import { connectWorker } from '../src/worker/client';

declare global {
  interface Window {
    amalgamCalls?: WorkerCalls;
  }
}

window.amalgamCalls = connectWorker();
