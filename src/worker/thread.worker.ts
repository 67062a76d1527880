/** A thread of the CPU engine: runs the kernels of its messages (src/backend/cpu/thread-backend.ts). */
import type { Batch } from '../backend/cpu/thread-backend';
import { takeMessages } from '../platform';

// the kernels' WebAssembly is a file, and batches come before it has
const serving = Promise.all([import('../backend/cpu/serve-thread'), import('./all-kernels')]).then(
  ([{ serveThread }, { allKernels }]) =>
    serveThread(allKernels, (answer, transfer) => self.postMessage(answer, { transfer })),
);

takeMessages<Batch>((batch) => void serving.then((serve) => serve(batch), reportError));
