/** A thread of the CPU engine: runs the kernels it is told to (src/cpu/remote-engine.ts). */
import type { Batch } from '../cpu/lane-protocol';
import { serveEngine } from '../cpu/serve-engine';
import { allKernels } from './all-kernels';

const serve = serveEngine(allKernels, (answer, transfer) => self.postMessage(answer, { transfer }));

self.onmessage = ({ data }: MessageEvent<Batch>) => serve(data);
