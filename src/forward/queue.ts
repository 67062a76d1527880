/**
 * The engine as the forward pass uses it: counts the bytes it holds, and waits for the device before too much is under
 * way. A graphics driver gives up on a device that is silent for seconds, and the proofs of execution of an engine
 * reach only so many dispatches back.
 */

import {
  type Backend,
  type BackendBuffer,
  type BufferRange,
  type Dispatch,
  dispatchWork,
} from '../backend/backend';
import type { Kernel } from '../backend/kernel';
import { nextTask } from '../platform';
import { throwIfCanceled } from '../sources/cancellation';

/** Seconds of work under way before the queue waits, and whoever stops it is heard. */
const SECONDS_UNDER_WAY = 0.05;
/** Its multiply-adds: before it is known how many a device does in a second, and at most. */
const WORK_UNDER_WAY = { cpu: [1e8, 5e8], software: [4e7, 5e8], gpu: [1e9, 5e10] } as const;
const LEAST_UNDER_WAY = 1e7;
/** Dispatches under way before it waits; the GPU engine can prove 1024. */
const DISPATCHES_UNDER_WAY = 512;
/** Bytes written before it waits: what is written is held twice until the device has taken it. */
const BYTES_UNDER_WAY = 256 << 20;

export interface Queue {
  readonly engine: Backend;
  /** Most bytes held so far. */
  readonly peakBytes: number;
  /** Most multiply-adds that one dispatch should have. */
  readonly dispatchWork: number;
  /** Most multiply-adds that may be under way: as many as take a moment here, from what was waited for so far. */
  readonly workUnderWay: number;
  /** A zeroed buffer of at least `byteLength`, a multiple of 16 bytes long. @throws AmalgamError `GpuOutOfMemory` */
  allocate(byteLength: number, label: string): BackendBuffer;
  /** The same for weights in panels: see `Backend.allocateWeights`. */
  allocateWeights(byteLength: number, label: string): BackendBuffer;
  free(buffer: BackendBuffer | undefined): void;
  /** @param handOver see `Backend.write` */
  write(
    buffer: BackendBuffer,
    byteOffset: number,
    data: ArrayBufferView<ArrayBuffer>,
    handOver?: boolean,
  ): void;
  /** Enqueues a dispatch; `work` is its multiply-adds, where they are many. */
  run<P extends string, B extends string>(
    kernel: Kernel<P, B>,
    dispatch: Dispatch<P, B>,
    work?: number,
  ): void;
  /**
   * Waits for the device when enough is under way, and for messages to this thread; free otherwise.
   * @param next multiply-adds of the dispatch that comes next
   * @throws what `Backend.read` throws; AmalgamError `Canceled` where it heeds a signal that has fired
   */
  breathe(next?: number): Promise<void>;
  /** Heeds a signal while `work` is under way. */
  heeding<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T>;
  /** Waits for everything and returns copies of the ranges. @throws what `Backend.read` throws */
  read(ranges: readonly BufferRange[]): Promise<Uint8Array<ArrayBuffer>[]>;
}

export function createQueue(engine: Backend): Queue {
  const [first, most] = WORK_UNDER_WAY[engine.kind === 'cpu' ? 'cpu' : engine.software ? 'software' : 'gpu'];
  let limit: number = first;
  let bytes = 0;
  let peakBytes = 0;
  let work = 0;
  let dispatches = 0;
  let written = 0;
  let heeded: AbortSignal | undefined;
  let computed = engine.seconds.compute;
  const read = async (ranges: readonly BufferRange[]) => {
    work = 0;
    dispatches = 0;
    written = 0;
    const bytes = await engine.read(ranges);
    computed = engine.seconds.compute;
    return bytes;
  };
  const wholeVectors = (byteLength: number) => Math.max(16, Math.ceil(byteLength / 16) * 16);
  const counted = (buffer: BackendBuffer) => {
    bytes += buffer.byteLength;
    peakBytes = Math.max(peakBytes, bytes);
    return buffer;
  };
  return {
    engine,
    dispatchWork: dispatchWork(engine),
    get peakBytes() {
      return peakBytes;
    },
    get workUnderWay() {
      return limit;
    },
    allocate: (byteLength, label) => counted(engine.allocate(wholeVectors(byteLength), label)),
    allocateWeights(byteLength, label) {
      const size = wholeVectors(byteLength);
      return counted(engine.allocateWeights?.(size, label) ?? engine.allocate(size, label));
    },
    free(buffer) {
      if (!buffer) return;
      bytes -= buffer.byteLength;
      engine.free(buffer);
    },
    write(buffer, byteOffset, data, handOver) {
      const { byteLength } = data;
      written += byteLength;
      const whole = new Uint8Array(data.buffer, data.byteOffset, byteLength);
      if (byteLength % 4 === 0) return engine.write(buffer, byteOffset, whole, handOver);
      const padded = new Uint8Array(Math.ceil(byteLength / 4) * 4);
      padded.set(whole);
      engine.write(buffer, byteOffset, padded, true);
    },
    run(kernel, dispatch, multiplyAdds = 0) {
      work += multiplyAdds;
      dispatches++;
      engine.run(kernel, dispatch);
    },
    async breathe(next = 0) {
      const isEnough = work > 0 && work + next > limit;
      if (!isEnough && dispatches <= DISPATCHES_UNDER_WAY && written <= BYTES_UNDER_WAY) return;
      const [done, before] = [work, computed];
      await read([]);
      if (isEnough) {
        const inTime = (SECONDS_UNDER_WAY * done) / (computed - before);
        limit = Math.max(LEAST_UNDER_WAY, Math.min(inTime, 2 * limit, most));
      }
      // an engine in this thread has let nobody else come
      if (engine.kind === 'cpu') await nextTask();
      throwIfCanceled(heeded);
    },
    async heeding(signal, own) {
      heeded = signal;
      try {
        return await own();
      } finally {
        heeded = undefined;
      }
    },
    read,
  };
}

/** Values of all promises, once all have ended. @throws the first failure, when none is under way any more */
export async function allEnded<T>(underWay: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(underWay);
  return Promise.all(underWay);
}

/** Rows on the device: f32, row r from r · stride on, `width` wide. */
export interface DeviceRows {
  buffer: BackendBuffer;
  rows: number;
  width: number;
  stride: number;
  /** Enqueue dispatches here. */
  queue: Queue;
}

/** Copies rows to the host, [rows · width]; waits for the device. */
export async function readRows({
  buffer,
  rows,
  width,
  stride,
  queue,
}: DeviceRows): Promise<Float32Array<ArrayBuffer>> {
  const [bytes] = await queue.read([{ buffer, byteLength: ((rows - 1) * stride + width) * 4 }]);
  const all = new Float32Array(bytes!.buffer);
  if (stride === width) return all;
  const out = new Float32Array(rows * width);
  for (let r = 0; r < rows; r++) out.set(all.subarray(r * stride, r * stride + width), r * width);
  return out;
}
