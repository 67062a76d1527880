import { Worker } from 'node:worker_threads';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';

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
