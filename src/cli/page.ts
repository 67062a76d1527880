import type { WorkerCalls } from '../worker/calls';
import { connectWorker } from '../worker/client';

declare global {
  interface Window {
    /** The calls of the page's worker. */
    amalgamHeadless?: WorkerCalls;
    /** Set by the command: prints a line of progress. */
    amalgamProgress?: (progress: object) => Promise<void>;
  }
}

/** The page's half of the headless command on WebGPU: the same worker as a person's tab, called from Node. */
export function exposeHeadless(): void {
  window.amalgamHeadless = connectWorker();
}
