/** A thread (src/host/threads.ts). */
import type { ThreadCalls } from '../host/threads';
import { exposeThread } from '../platform';

// the kernels' WebAssembly is a file, and calls come before it has
const serving = import('./all-kernels').then(({ threadCalls }) => threadCalls());

const calls: ThreadCalls = {
  open: async (...what) => (await serving).open(...what),
  call: async (...what) => (await serving).call(...what),
};
exposeThread(calls);
