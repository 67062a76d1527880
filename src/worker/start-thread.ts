import type { ThreadPort } from '../backend/cpu/thread-backend';
import { trustedWorkerUrl } from '../trusted-worker-url';
import threadUrl from './thread.worker.ts?worker&url';

/** Starts a thread of the CPU backend; the command in Node has its own (host/node/start-thread.ts). */
export function startThread(): ThreadPort {
  return new Worker(trustedWorkerUrl(threadUrl), { type: 'module', name: 'amalgam-cpu-thread' });
}
