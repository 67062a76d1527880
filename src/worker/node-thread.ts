/** A thread of the CPU backend in Node: runs the kernels of its messages. */
import { parentPort } from 'node:worker_threads';
import { serveThread } from '../backend/cpu/serve-thread';
import type { Batch } from '../backend/cpu/thread-backend';
import { allKernels } from './all-kernels';

const serve = serveThread(allKernels, (answer, transfer) =>
  parentPort!.postMessage(answer, transfer as ArrayBuffer[]),
);

parentPort!.on('message', (batch: Batch) => serve(batch));
