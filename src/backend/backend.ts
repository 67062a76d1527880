import type { BackendKind } from '../reports/backend';
import type { Kernel } from './kernel';

/**
 * A place to run kernels. `webgpu` and `cpu` implement exactly this; everything above is written once.
 * Calls enqueue in order; only `read` waits.
 */
export interface Backend {
  readonly kind: BackendKind;
  /** Adapter description for the badge and the report, e.g. `SwiftShader` or `WebAssembly`. */
  readonly adapter: string;
  /** Kernels run on the processor (WebAssembly, or a software adapter): reuse in registers pays, barriers do not. */
  readonly software: boolean;
  /** Largest single buffer (and binding) in bytes. */
  readonly maxBufferBytes: number;
  /** Bytes that a run should take here for its tiles. Default: src/merge/tensor/workspace.ts. */
  readonly tileBytes?: number;
  /** Stored bytes of a tensor that may stay here between its passes. Default: src/merge/tensor/workspace.ts. */
  readonly keptBytes?: number;
  /** Bytes of weights that may stay here while a text is written, where that is known. */
  readonly residentBytes?: number;
  /** Seconds spent so far, for the stage times of a report. */
  readonly seconds: Readonly<BackendSeconds>;

  /** A zeroed buffer; `byteLength` is rounded up to a multiple of 4 and is at least 4. @throws GpuOutOfMemory */
  allocate(byteLength: number, label: string): BackendBuffer;
  /**
   * The same for weights in panels (`packPanels`), where other threads of the engine reach them; absent where there are none.
   * As `weights` of `packPanels` and `matmulPacked` alone.
   */
  allocateWeights?(byteLength: number, label: string): BackendBuffer;
  free(buffer: BackendBuffer): void;
  /**
   * Copies `data` into the buffer. Offset and length are multiples of 4.
   * @param handOver the caller uses neither `data` nor what it is a view of again: an engine may take it without a copy
   */
  write(buffer: BackendBuffer, byteOffset: number, data: Uint8Array<ArrayBuffer>, handOver?: boolean): void;
  /**
   * The memory of a range, to be filled where it lies; it moves with the next allocation. Absent where the buffers are
   * somewhere else.
   */
  memoryOf?(buffer: BackendBuffer, byteOffset: number, byteLength: number): Uint8Array<ArrayBuffer>;
  /** Fills a range with zeros. Offset and length are multiples of 4; default the whole buffer. */
  clear(buffer: BackendBuffer, byteOffset?: number, byteLength?: number): void;
  /** Enqueues one dispatch. */
  run<P extends string, B extends string>(kernel: Kernel<P, B>, dispatch: Dispatch<P, B>): void;
  /**
   * Waits for everything enqueued and returns a copy of each range. Proves first that every dispatch since the last
   * read really ran (nonce and element count). @throws GpuUnverified, GpuLost, GpuValidation, GpuOutOfMemory
   */
  read(ranges: readonly BufferRange[]): Promise<Uint8Array<ArrayBuffer>[]>;
  close(): void;
}

/** Bytes of a buffer; offset and length are multiples of 4. */
export interface BufferRange {
  buffer: BackendBuffer;
  byteOffset?: number;
  byteLength: number;
  /** Memory of at least `byteLength` bytes in which the answer may come; the caller gives it away. */
  into?: ArrayBuffer;
}

export interface BackendSeconds {
  upload: number;
  /** Kernels, including the wait for them. */
  compute: number;
  readback: number;
}

/** Opaque to everyone but the engine that made it. */
export interface BackendBuffer {
  readonly label: string;
  readonly byteLength: number;
}

export interface Dispatch<P extends string, B extends string> {
  params: Record<P, number>;
  buffers: Record<B, BackendBuffer>;
  /** Workgroups to start. Default: as many as cover the elements (`workOf`). */
  groups?: number;
  /** Elements the dispatch must report as done: the sum of what its workgroups stamp. Default: the kernel's `work`. */
  elements?: number;
}

/**
 * Bytes of weights that may stay on an engine while a text is written, as a share of the machine's memory: what two memories of
 * the processor hold at most; a graphics device tells nobody how much it has.
 */
export function roomForWeights(kind: BackendKind): number {
  // not every browser tells
  const { deviceMemory = 4 } = navigator as Navigator & { deviceMemory?: number };
  const machine = deviceMemory * 2 ** 30;
  return kind === 'cpu' ? Math.min(7 * 2 ** 30, machine / 2) : Math.min(4 * 2 ** 30, machine / 4);
}

/**
 * Multiply-adds of one dispatch: a driver that sees no answer for about two seconds resets the device. The first is for
 * adapters that compute on the processor; there more than 20 contributors of a row-wise method can take twice as much.
 */
export const DISPATCH_WORK = { software: 5e8, gpu: 1e10 } as const;

/** Most multiply-adds that one dispatch should have on this engine. */
export function dispatchWork({ software }: Pick<Backend, 'software'>): number {
  return software ? DISPATCH_WORK.software : DISPATCH_WORK.gpu;
}

// An engine that counts the bytes it allocates, so that the peak printed is the peak allocated.

export interface CountedBackend extends Backend {
  /** Bytes of buffers held now, and the most there ever were. */
  readonly bytes: number;
  readonly peakBytes: number;
}

/** The same engine, counted. */
export function countedBackend(engine: Backend): CountedBackend {
  let bytes = 0;
  let peakBytes = 0;
  const counted = (buffer: BackendBuffer) => {
    bytes += buffer.byteLength;
    peakBytes = Math.max(peakBytes, bytes);
    return buffer;
  };
  // an engine may be of a class, whose methods a copy of its fields has not
  return {
    kind: engine.kind,
    adapter: engine.adapter,
    software: engine.software,
    maxBufferBytes: engine.maxBufferBytes,
    ...(engine.tileBytes === undefined ? {} : { tileBytes: engine.tileBytes }),
    ...(engine.keptBytes === undefined ? {} : { keptBytes: engine.keptBytes }),
    ...(engine.residentBytes === undefined ? {} : { residentBytes: engine.residentBytes }),
    get seconds() {
      return engine.seconds;
    },
    get bytes() {
      return bytes;
    },
    get peakBytes() {
      return peakBytes;
    },
    allocate: (byteLength, label) => counted(engine.allocate(byteLength, label)),
    ...(engine.allocateWeights && {
      allocateWeights: (byteLength: number, label: string) =>
        counted(engine.allocateWeights!(byteLength, label)),
    }),
    free(buffer) {
      bytes -= buffer.byteLength;
      engine.free(buffer);
    },
    write: (buffer, byteOffset, data, handOver) => engine.write(buffer, byteOffset, data, handOver),
    clear: (buffer, byteOffset, byteLength) => engine.clear(buffer, byteOffset, byteLength),
    run: (kernel, dispatch) => engine.run(kernel, dispatch),
    read: (ranges) => engine.read(ranges),
    close: () => engine.close(),
  };
}
