import type { Endpoint } from 'comlink';
import { trustedWorkerUrl } from '../trusted-worker-url';
import workerUrl from './foreign-text.worker.ts?worker&url';

/** A thread that can be ended at any moment. */
export interface ForeignTextPort {
  endpoint: Endpoint;
  /** Hears of what the thread did not catch. */
  onError(tell: (message: string) => void): void;
  terminate(): void;
}

/** Starts a thread for foreign text in a browser. */
export function startForeignText(): ForeignTextPort {
  const worker = new Worker(trustedWorkerUrl(workerUrl), { type: 'module', name: 'amalgam-foreign-text' });
  return {
    endpoint: worker,
    onError: (tell) => worker.addEventListener('error', ({ message }) => tell(message)),
    terminate: () => worker.terminate(),
  };
}
