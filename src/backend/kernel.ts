/**
 * A kernel is one operation in two forms: WGSL for the GPU, and for the processor WebAssembly (assembly/kernels, the file of
 * the same name) or, where speed does not matter, a loop over typed arrays. The forms of merging give the same bits
 * (docs/numbers.md). Nothing here knows about a device.
 *
 * Conventions every kernel follows
 * - `wgslOf` writes all bindings from the declaration, so that no WGSL file does. Binding 0 is the uniform `params: Params`:
 *   its first field is `stamp: vec4<u32>` (nonce, slot, zero, 0), then the 4-byte scalars of `params` in their order;
 * - bindings 1…n are the storage buffers in the order of `buffers`, arrays under their names; binding 9 is the stamp buffer
 *   (shaders/lib/stamp.wgsl);
 * - the entry point is `main`; the work is cut into workgroups numbered by `group_index()` so that more than
 *   65 535 groups are dispatched as a 2-D grid.
 */
import type { KernelExports } from 'virtual:cpu-kernels';
import type { Library } from './gpu/wgsl';

export type { KernelExports };

type ScalarType = 'u32' | 'f32';
/** Elements of a buffer in WGSL; a kernel writes to `rw` ones. The processor's forms take them as they please. */
type Element = 'u32' | 'f32' | 'vec2u' | 'vec2f' | 'vec4u' | 'vec4f';
type BufferType = Element | `rw ${Element | 'atomic<u32>'}`;

export interface Kernel<P extends string = string, B extends string = string> extends Forms<P, B> {
  readonly id: string;
  /** Its own file of WGSL; empty for a kernel of the processor alone. */
  readonly wgsl: string;
  /** What stands before it when it is compiled (shaders/lib): the page and the plan need none of it. */
  readonly libraries: readonly Library[];
  readonly params: Readonly<Record<P, ScalarType>>;
  readonly buffers: Readonly<Record<B, BufferType>>;
}

/** How a kernel runs on the processor: in one of the two forms; a kernel that only real GPUs are given has neither. */
interface Forms<P extends string, B extends string> {
  /** Runs the kernel in WebAssembly on one strip of a dispatch. */
  wasm?(kernels: KernelExports, strip: Strip<P, B>): void;
  /** Elements of which every strip but the last is a whole multiple; without it a strip is the whole dispatch. */
  unit?(params: Readonly<Record<P, number>>): number;
  /** Runs the whole dispatch on typed arrays. */
  cpu?(run: CpuRun<P, B>): void;
  /** Of a product by weights in panels: the code of their dtype. Threads can share its outputs out among them. */
  readonly panels?: number;
  /** Work items of a dispatch. Default: its parameter `elements`. */
  work?(params: Readonly<Record<P, number>>): number;
  /** Work items of a workgroup. Default: `unit`, or a block. */
  span?(params: Readonly<Record<P, number>>): number;
}

/** Workgroups to start and work items they stamp, as the kernel declares them where the dispatch does not say. */
export function workOf<P extends string, B extends string>(
  kernel: Kernel<P, B>,
  { params, groups, elements }: { params: Record<P, number>; groups?: number; elements?: number },
): { groups: number; elements: number } {
  const items = elements ?? kernel.work?.(params) ?? (params as Record<string, number>).elements!;
  const span = kernel.span?.(params) ?? kernel.unit?.(params) ?? BLOCK;
  return { groups: groups ?? Math.ceil(items / span), elements: items };
}

/** Arguments of a kernel's form on typed arrays: parameters by name, buffers as views. */
export interface CpuRun<P extends string = string, B extends string = string> {
  readonly params: Readonly<Record<P, number>>;
  u32(name: B): Uint32Array;
  f32(name: B): Float32Array;
}

/** Elements [begin, begin + n) of a dispatch for its form in WebAssembly. Addresses are bytes in the module's memory. */
export interface Strip<P extends string = string, B extends string = string> {
  readonly params: Readonly<Record<P, number>>;
  at(buffer: B): number;
  /** Bytes of a buffer. */
  size(buffer: B): number;
  /** State shared by the strips of one dispatch, filled in by the first. */
  readonly memo: { small?: number };
  /** All of the memory as words and as floats. */
  readonly words: Uint32Array;
  readonly floats: Float32Array;
  readonly begin: number;
  readonly n: number;
}

/** Declares a kernel; the parameter and buffer names become types. */
export function defineKernel<
  const P extends Record<string, ScalarType>,
  const B extends Record<string, BufferType>,
>(
  declaration: Omit<
    Kernel<Extract<keyof P, string>, Extract<keyof B, string>>,
    'libraries' | 'params' | 'buffers'
  > & {
    libraries?: readonly Library[];
    params: P;
    buffers: B;
  },
): Kernel<Extract<keyof P, string>, Extract<keyof B, string>> {
  return { libraries: [], ...declaration };
}

/**
 * Reductions and selections work on blocks of this many consecutive elements, aligned to the tensor's flat index, so
 * that a result never depends on where tiles were cut. Tiles are multiples of it.
 */
export const BLOCK = 4096;
/** Elements of a strip: what one kernel writes of it is still in the processor's cache when the next one reads it. */
export const STRIP = 8 * BLOCK;
/** Address of the kernels' scratch, in the pages of memory that no buffer gets, and how many pages those are. */
export const SCRATCH = 64;
export const SCRATCH_PAGES = 3;

/** Number of blocks that cover `elements`. */
export function blockCount(elements: number): number {
  return Math.ceil(elements / BLOCK);
}

/** The block that a strip begins with. */
export function blockOf({ begin }: Pick<Strip, 'begin'>): number {
  return begin / BLOCK;
}

/** Adds to the counter at word `index` of a buffer. */
export function addTo<B extends string>(
  { words, at }: Pick<Strip<never, B>, 'words' | 'at'>,
  buffer: B,
  index: number,
  count: number,
): void {
  words[at(buffer) / 4 + index]! += count;
}
