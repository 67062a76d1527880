/**
 * The smallest pages in which a browser collects what is awaited, with the studio's own calls (src/platform.ts) in the place of
 * bare ones: file handles in Chromium (bare ones stand still after some 100 opens), workers of workers in Firefox.
 */
import { startWorker } from '../../src/platform';
import workerUrl from './held.worker.ts?worker&url';

declare global {
  interface Window {
    /** Does it in a worker, and returns the work done. */
    hold(what: 'files' | 'workers', rounds: number): Promise<number>;
  }
}

window.hold = (what, rounds) =>
  new Promise((resolve, reject) => {
    const worker = startWorker(workerUrl, what);
    worker.addEventListener('message', ({ data }: MessageEvent<number | string | object>) => {
      // it wants a thread
      if (typeof data === 'object') return;
      worker.terminate();
      if (typeof data === 'number') resolve(data);
      else reject(new Error(data));
    });
    worker.addEventListener('error', ({ message }) => reject(new Error(message)));
    worker.postMessage({ what, rounds });
  });
