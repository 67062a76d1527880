import { Worker } from 'node:worker_threads';
import type { ThreadPort } from '../../backend/cpu/thread-backend';

/** Starts a thread of the CPU backend, bundled beside the command. */
export function startThread(): ThreadPort {
  const thread = new Worker(new URL('./thread.mjs', import.meta.url));
  const port: ThreadPort = {
    postMessage: (batch, transfer) => thread.postMessage(batch, transfer as ArrayBuffer[]),
    onmessage: null,
    onerror: null,
    terminate: () => void thread.terminate(),
  };
  thread.on('message', (data) => port.onmessage?.({ data } as MessageEvent));
  thread.on('error', ({ message }) => port.onerror?.({ message } as ErrorEvent));
  // a command that is done does not wait for its threads
  thread.unref();
  return port;
}
