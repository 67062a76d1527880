import { Worker } from 'node:worker_threads';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';
import type { ThreadPort } from '../../backend/cpu/thread-backend';
import type { MergePort } from '../threads';

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

/** Starts a thread that merges, bundled beside the command. @param cache as `becomeHost` has it */
export function startMergeThread(cache: string): MergePort {
  const thread = new Worker(new URL('./merge-thread.mjs', import.meta.url), { workerData: cache });
  thread.unref();
  return {
    endpoint: nodeEndpoint(thread),
    onError: (tell) => thread.on('error', ({ message }) => tell(message)),
    terminate: () => void thread.terminate(),
  };
}

/** Limit of the thread's heap: reading the largest tokenizer takes about 600 MB. */
const HEAP_MB = 2048;

/** Starts the thread that reads foreign text, bundled beside the command. */
export function startForeignText() {
  const thread = new Worker(new URL('./foreign-text.mjs', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
  thread.unref();
  return {
    endpoint: nodeEndpoint(thread),
    onError: (tell: (message: string) => void) => thread.on('error', ({ message }) => tell(message)),
    terminate: () => void thread.terminate(),
  };
}
