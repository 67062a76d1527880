/** Memories of WebAssembly, in which the CPU engine's buffers are ranges, so that kernels reach them without a copy. */
import { CPU_KERNELS } from 'virtual:cpu-kernels';
import { AmalgamError } from '../../errors';
import { type KernelExports, SCRATCH_PAGES } from '../kernel';

export const PAGE = 65_536;
const MOST_PAGES = 65_536;
/** Addresses are multiples of this, and a buffer may be read and written up to its next multiple. */
const ALIGN = 64;

/** Place of a buffer in a memory. */
export interface Range {
  readonly address: number;
  readonly byteLength: number;
}

/** One growing memory with a list of free ranges in the order of their addresses. Memory that is freed is used again. */
export class CpuMemory {
  /** Kernels may use the first pages as scratch; they are never given away. */
  readonly memory: WebAssembly.Memory;
  private readonly free: { begin: number; end: number }[] = [];
  /** From here on nothing was given yet: it is zero, and the system has no page for it before it is used. */
  private untouched = SCRATCH_PAGES * PAGE;

  /** @param shared other threads reach it too */
  constructor(shared = false) {
    this.memory = new WebAssembly.Memory({ initial: SCRATCH_PAGES, maximum: MOST_PAGES, shared });
  }

  /** A zeroed range of `byteLength` bytes. @throws RangeError when there is no memory left */
  take(byteLength: number): Range {
    const size = Math.ceil(byteLength / ALIGN) * ALIGN;
    let at = this.free.findIndex(({ begin, end }) => end - begin >= size);
    if (at < 0) at = this.grow(size);
    const range = this.free[at]!;
    const address = range.begin;
    range.begin += size;
    if (range.begin === range.end) this.free.splice(at, 1);
    const used = Math.max(0, Math.min(size, this.untouched - address));
    new Uint8Array(this.memory.buffer, address, used).fill(0);
    this.untouched = Math.max(this.untouched, address + size);
    return { address, byteLength };
  }

  give({ address, byteLength }: Range): void {
    const end = address + Math.ceil(byteLength / ALIGN) * ALIGN;
    const next = this.free.findIndex(({ begin }) => begin > address);
    const at = next < 0 ? this.free.length : next;
    this.free.splice(at, 0, { begin: address, end });
    this.join(at);
    this.join(at - 1);
  }

  /** The range's bytes. Growing the memory detaches earlier views, or leaves them short, so nobody stores one. */
  bytes({ address, byteLength }: Range): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.memory.buffer, address, byteLength);
  }

  /** Adds pages for `size` bytes to the free ranges; returns the index of the last range. @throws RangeError */
  private grow(size: number): number {
    const end = this.memory.buffer.byteLength;
    const last = this.free.at(-1);
    const there = last?.end === end ? end - last.begin : 0;
    this.memory.grow(Math.ceil((size - there) / PAGE));
    this.free.push({ begin: end, end: this.memory.buffer.byteLength });
    this.join(this.free.length - 2);
    return this.free.length - 1;
  }

  /** Joins free range `at` with the next one where they touch. */
  private join(at: number): void {
    const a = this.free[at];
    const b = this.free[at + 1];
    if (!a || !b || a.end !== b.begin) return;
    a.end = b.end;
    this.free.splice(at + 1, 1);
  }
}

/** The byte behind it tells of the memory that the module wants: 1 has a maximum, 3 is shared as well. */
const WANTED_MEMORY = new TextEncoder().encode('\x03env\x06memory\x02');

/** The kernels as they are over a memory that several threads share. */
function overSharedMemory(module: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const found = module.findIndex((_, at) => WANTED_MEMORY.every((byte, i) => module[at + i] === byte));
  const shared = module.slice();
  shared[found + WANTED_MEMORY.length] = 3;
  return shared;
}

/** Compiled once in a thread: over a memory of its own, and over shared ones. */
const compiled = new Map<boolean, WebAssembly.Module>();

function compiledKernels(isShared: boolean): WebAssembly.Module {
  const known = compiled.get(isShared);
  if (known) return known;
  if (!WebAssembly.validate(CPU_KERNELS)) {
    throw new AmalgamError(
      'NoWebAssembly',
      'This browser has no WebAssembly SIMD, which the CPU engine needs.',
      'Use a browser from 2023 or later, or the WebGPU engine.',
    );
  }
  const module = new WebAssembly.Module(isShared ? overSharedMemory(CPU_KERNELS) : CPU_KERNELS);
  compiled.set(isShared, module);
  return module;
}

/** The kernels in WebAssembly over a memory. @throws AmalgamError `NoWebAssembly` where the browser has none with SIMD */
export function instantiateKernels(memory: WebAssembly.Memory): KernelExports {
  const isShared = !(memory.buffer instanceof ArrayBuffer);
  const instance = new WebAssembly.Instance(compiledKernels(isShared), { env: { memory } });
  return instance.exports as unknown as KernelExports;
}
