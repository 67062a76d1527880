/** A thread of the CPU engine: runs the kernels it is told to (src/backend/cpu/thread-backend.ts). */

import { serveThread } from '../backend/cpu/serve-thread';
import type { Batch } from '../backend/cpu/thread-protocol';
import { allKernels } from './all-kernels';

const serve = serveThread(allKernels, (answer, transfer) => self.postMessage(answer, { transfer }));

self.onmessage = ({ data }: MessageEvent<Batch>) => serve(data);
