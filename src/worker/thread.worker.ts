/** A thread (src/host/threads.ts). */
import { exposeThread } from '../platform';
import type { ThreadCalls } from './all-kernels';

// the kernels' WebAssembly is a file, and calls come before it has
const serving = import('./all-kernels').then(({ threadCalls }) => threadCalls());

const calls: ThreadCalls = {
  open: async (...what) => (await serving).open(...what),
  measure: async () => (await serving).measure(),
  merge: async (...what) => (await serving).merge(...what),
  hash: async (...what) => (await serving).hash(...what),
  openPass: async (...what) => (await serving).openPass(...what),
  take: async (index) => (await serving).take(index),
  compute: async (batch) => (await serving).compute(batch),
  help: async (request) => (await serving).help(request),
};
exposeThread(calls);
