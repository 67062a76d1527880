/** A thread of the CPU engine: runs the kernels it is told to (src/backend/cpu/thread-backend.ts). */
import type { Batch } from '../backend/cpu/thread-protocol';

// the kernels' WebAssembly is a file, and batches come before it has
const serving = Promise.all([import('../backend/cpu/serve-thread'), import('./all-kernels')]).then(
  ([{ serveThread }, { allKernels }]) =>
    serveThread(allKernels, (answer, transfer) => self.postMessage(answer, { transfer })),
);

self.onmessage = ({ data }: MessageEvent<Batch>) => {
  serving.then((serve) => serve(data), reportError);
};
