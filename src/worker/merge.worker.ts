/** A thread of a merge (src/merge/run/serve-thread.ts). */
import type { RemoteCalls } from '../merge/run/remote-thread';
import { exposeHere } from '../platform';

// the kernels' WebAssembly is a file, and calls come before it has
const serving = import('../merge/run/serve-thread').then(({ serveMergeThread }) => serveMergeThread());

const calls: RemoteCalls = {
  open: async (...what) => (await serving).open(...what),
  measure: async () => (await serving).measure(),
  merge: async (...what) => (await serving).merge(...what),
  hash: async (...what) => (await serving).hash(...what),
};
exposeHere(calls);
