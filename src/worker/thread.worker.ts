/** A thread (src/host/threads.ts). */
import type { BatchCalls } from '../backend/cpu/thread-backend';
import type { RemoteCalls } from '../merge/run/remote-thread';
import { exposeHere } from '../platform';

// the kernels' WebAssembly is a file, and calls come before it has
const serving = import('./all-kernels').then(({ threadCalls }) => threadCalls());

const calls: RemoteCalls & BatchCalls = {
  open: async (...what) => (await serving).open(...what),
  measure: async () => (await serving).measure(),
  merge: async (...what) => (await serving).merge(...what),
  hash: async (...what) => (await serving).hash(...what),
  compute: async (batch) => (await serving).compute(batch),
};
exposeHere(calls);
