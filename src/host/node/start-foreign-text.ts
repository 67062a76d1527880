import { Worker } from 'node:worker_threads';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';

/** Starts the thread that reads foreign text, bundled beside the command. */
export function startForeignText() {
  const thread = new Worker(new URL('./foreign-text.mjs', import.meta.url));
  thread.unref();
  return {
    endpoint: nodeEndpoint(thread),
    onError: (tell: (message: string) => void) => thread.on('error', ({ message }) => tell(message)),
    terminate: () => void thread.terminate(),
  };
}
