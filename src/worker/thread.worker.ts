/** A thread (src/host/threads.ts). */
import type { HelpCalls } from '../backend/cpu/shared-weights';
import type { ThreadCalls } from '../host/threads';
import { exposeThread } from '../platform';

// the kernels' WebAssembly is a file, and calls come before it has
const serving = import('./all-kernels').then(({ threadCalls }) => threadCalls());

const calls: ThreadCalls & HelpCalls = {
  open: async (...what) => (await serving).open(...what),
  call: async (...what) => (await serving).call(...what),
  help: async (request) => (await serving).help(request),
};
exposeThread(calls);
