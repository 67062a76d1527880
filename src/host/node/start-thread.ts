import { Worker } from 'node:worker_threads';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';
import type { WorkerPort } from '../../platform';

const YOUNG_MB = 8;

/** Starts a thread, bundled beside the command. @param cache as `becomeHost` has it */
export function startThread(cache: string): WorkerPort {
  const thread = new Worker(new URL('./thread.mjs', import.meta.url), {
    workerData: cache,
    // little of a thread's memory is JavaScript's
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  return portOf(thread);
}

/** Limit of the thread's heap: reading the largest tokenizer takes about 600 MB. */
const HEAP_MB = 2048;

/** Starts the thread that reads foreign text, bundled beside the command. */
export function startForeignText() {
  const thread = new Worker(new URL('./foreign-text.mjs', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
  return portOf(thread);
}

function portOf(thread: Worker): WorkerPort {
  // a command that is done does not wait for its threads
  thread.unref();
  return {
    endpoint: nodeEndpoint(thread),
    onError: (tell) => thread.on('error', ({ message }) => tell(message)),
    terminate: () => void thread.terminate(),
  };
}
