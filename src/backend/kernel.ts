/**
 * A kernel is one operation written twice: as WGSL for the GPU and as a loop over typed arrays for the CPU. Both must
 * give the same bits (docs/numbers.md). Nothing here knows about a device.
 *
 * Conventions every kernel follows
 * - binding 0 is the uniform `params: Params`; its first field is `stamp: vec4<u32>` (nonce, slot, zero, 0), then the
 *   kernel's own 4-byte scalars in the order of `params` below;
 * - bindings 1…n are the storage buffers in the order of `buffers`; binding 9 is the stamp buffer (shaders/lib/stamp.wgsl);
 * - the entry point is `main`; the work is cut into workgroups numbered by `group_index()` so that more than
 *   65 535 groups are dispatched as a 2-D grid.
 */
export type ScalarType = 'u32' | 'f32';
export type Access = 'read' | 'read_write';

export interface Kernel<P extends string = string, B extends string = string> {
  readonly id: string;
  /** Complete WGSL: the libraries it needs followed by its own file. */
  readonly wgsl: string;
  readonly params: Readonly<Record<P, ScalarType>>;
  readonly buffers: Readonly<Record<B, Access>>;
  cpu(run: CpuRun<P, B>): void;
}

/** What the typed-array twin sees: parameters by name, buffers as views, and the number of workgroups to cover. */
export interface CpuRun<P extends string = string, B extends string = string> {
  readonly params: Readonly<Record<P, number>>;
  readonly groups: number;
  u32(name: B): Uint32Array;
  f32(name: B): Float32Array;
}

/** Declares a kernel; the parameter and buffer names become types. */
export function defineKernel<
  const P extends Record<string, ScalarType>,
  const B extends Record<string, Access>,
>(kernel: {
  id: string;
  wgsl: string;
  params: P;
  buffers: B;
  cpu(run: CpuRun<Extract<keyof P, string>, Extract<keyof B, string>>): void;
}): Kernel<Extract<keyof P, string>, Extract<keyof B, string>> {
  return kernel as Kernel<Extract<keyof P, string>, Extract<keyof B, string>>;
}

/**
 * Reductions and selections work on blocks of this many consecutive elements, aligned to the tensor's flat index, so
 * that a result never depends on where tiles were cut. Tiles are multiples of it.
 */
export const BLOCK = 4096;
/** Invocations of a workgroup; inside a block lane `l` visits elements l, l + LANES, l + 2·LANES, … */
export const LANES = 64;

/** Number of blocks that cover `elements`. */
export function blockCount(elements: number): number {
  return Math.ceil(elements / BLOCK);
}
