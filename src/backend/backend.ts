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
  /** Bytes that a run should take here for its tiles. Default: src/merge/tensor/device-budget.ts. */
  readonly tileBytes?: number;
  /** Stored bytes of a tensor that may stay here between its passes. Default: src/merge/tensor/device-budget.ts. */
  readonly keptBytes?: number;
  /** Seconds spent so far, for the stage times of a report. */
  readonly seconds: Readonly<BackendSeconds>;

  /** A zeroed buffer; `byteLength` is rounded up to a multiple of 4 and is at least 4. @throws GpuOutOfMemory */
  allocate(byteLength: number, label: string): BackendBuffer;
  free(buffer: BackendBuffer): void;
  /**
   * Copies `data` into the buffer. Offset and length are multiples of 4.
   * @param handOver the caller uses neither `data` nor what it is a view of again: an engine may take it without a copy
   */
  write(buffer: BackendBuffer, byteOffset: number, data: Uint8Array<ArrayBuffer>, handOver?: boolean): void;
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
