import { CPU_KERNELS } from 'virtual:cpu-kernels';
import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';
import { CPU_ADAPTER } from '../../reports/backend';
import type { Backend, BackendBuffer, BackendSeconds, BufferRange, Dispatch } from '../backend';
import { type Kernel, type KernelExports, SCRATCH_PAGES, STRIP, workOf } from '../kernel';

/** The CPU engine's buffers: ranges of one WebAssembly memory, so that kernels in WebAssembly reach them without a copy. */

const PAGE = 65_536;
const MOST_PAGES = 65_536;
/** Addresses are multiples of this, and a buffer may be read and written up to its next multiple. */
const ALIGN = 64;

/** Place of a buffer in the memory. */
interface Range {
  readonly address: number;
  readonly byteLength: number;
}

/** One growing memory with a list of free ranges in the order of their addresses. Memory that is freed is used again. */
class CpuMemory {
  /** Kernels may use the first pages as scratch; they are never given away. */
  readonly memory = new WebAssembly.Memory({ initial: SCRATCH_PAGES, maximum: MOST_PAGES });
  private readonly free: { begin: number; end: number }[] = [];
  /** From here on nothing was given yet: it is zero, and the system has no page for it before it is used. */
  private untouched = SCRATCH_PAGES * PAGE;

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

  /** The range's bytes. Growing the memory detaches earlier views, so nobody stores one. */
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

interface CpuBuffer extends BackendBuffer {
  range: Range | undefined;
}

/** A dispatch that waits for the next read. */
interface Queued {
  buffers: readonly BackendBuffer[];
  elements: number;
  /** Absent where the kernel runs on typed arrays: then it is run whole. */
  strip?: (begin: number, n: number) => void;
  /** Elements of a strip. */
  step: number;
  whole: () => void;
}

/** Name of the CPU backend in badge and reports. */

/** WebAssembly reaches 2^32 bytes, but a single large allocation is the first thing to fail. */
const MAX_BUFFER_BYTES = 1 << 30;

/** The kernels in WebAssembly over a memory. @throws AmalgamError `NoWebAssembly` where the browser has none with SIMD */
export function instantiateKernels(memory: WebAssembly.Memory): KernelExports {
  if (!WebAssembly.validate(CPU_KERNELS)) {
    throw new AmalgamError(
      'NoWebAssembly',
      'This browser has no WebAssembly SIMD, which the CPU engine needs.',
      'Use a browser from 2023 or later, or the WebGPU engine.',
    );
  }
  const instance = new WebAssembly.Instance(new WebAssembly.Module(CPU_KERNELS), { env: { memory } });
  return instance.exports as unknown as KernelExports;
}

/**
 * The engine on the processor, on the calling thread: kernels in WebAssembly, a few on typed arrays. Dispatches wait for the
 * next read and then go strip by strip through all of them; the bits are those of one
 * dispatch after the other.
 */
export function createCpuBackend(): Backend {
  const seconds: BackendSeconds = { upload: 0, compute: 0, readback: 0 };
  const spend = <T>(kind: keyof BackendSeconds, work: () => T): T => {
    const begin = performance.now();
    const result = work();
    seconds[kind] += (performance.now() - begin) / 1000;
    return result;
  };
  const memory = new CpuMemory();
  const kernels = instantiateKernels(memory.memory);
  const bytesOf = (buffer: BackendBuffer): Uint8Array<ArrayBuffer> => {
    const { range, label } = buffer as CpuBuffer;
    if (!range) throw new Error(`${label} was freed`);
    return memory.bytes(range);
  };
  let queue: Queued[] = [];
  const flush = () => {
    const waiting = queue;
    queue = [];
    if (waiting.length > 0) spend('compute', () => runAll(waiting));
  };
  /** Runs what waits, unless none of it uses the buffer: then the change cannot be seen by it. */
  const before = (buffer: BackendBuffer) => {
    if (queue.some(({ buffers }) => buffers.includes(buffer))) flush();
  };

  let seen = { words: new Uint32Array(0), floats: new Float32Array(0) };
  /** All of the memory; anew when it has grown. */
  const views = () => {
    const { buffer } = memory.memory;
    if (seen.words.buffer !== buffer) {
      seen = { words: new Uint32Array(buffer), floats: new Float32Array(buffer) };
    }
    return seen;
  };

  function stripOf<P extends string, B extends string>(
    kernel: Kernel<P, B>,
    { params, buffers }: Dispatch<P, B>,
  ): Queued['strip'] {
    if (!kernel.wasm) return undefined;
    const at = (name: B) => (buffers[name] as CpuBuffer).range!.address;
    const size = (name: B) => buffers[name].byteLength;
    const memo = {};
    return (begin, n) => kernel.wasm!(kernels, { params, at, size, memo, ...views(), begin, n });
  }

  return {
    kind: 'cpu',
    adapter: CPU_ADAPTER,
    software: true,
    maxBufferBytes: MAX_BUFFER_BYTES,
    seconds,
    allocate(byteLength, label): CpuBuffer {
      const size = Math.max(4, Math.ceil(byteLength / 4) * 4);
      try {
        return { label, byteLength: size, range: memory.take(size) };
      } catch (cause) {
        throw new AmalgamError(
          'GpuOutOfMemory',
          `No memory for ${label} (${counted(size, 'byte')}).`,
          'Close other tabs or choose a smaller tile.',
          { cause },
        );
      }
    },
    free(buffer) {
      flush();
      const own = buffer as CpuBuffer;
      if (own.range) memory.give(own.range);
      own.range = undefined;
    },
    write(buffer, byteOffset, data) {
      before(buffer);
      spend('upload', () => bytesOf(buffer).set(data, byteOffset));
    },
    memoryOf(buffer, byteOffset, byteLength) {
      before(buffer);
      return bytesOf(buffer).subarray(byteOffset, byteOffset + byteLength);
    },
    clear(buffer, byteOffset = 0, byteLength = buffer.byteLength - byteOffset) {
      before(buffer);
      bytesOf(buffer).fill(0, byteOffset, byteOffset + byteLength);
    },
    run<P extends string, B extends string>(kernel: Kernel<P, B>, dispatch: Dispatch<P, B>) {
      const { params, buffers } = dispatch;
      const { elements } = workOf(kernel, dispatch);
      const strip = stripOf(kernel, dispatch);
      queue.push({
        buffers: Object.values(buffers),
        elements,
        ...(strip ? { strip } : {}),
        step: stepOf(kernel, params, elements),
        whole: () => {
          const words = (name: B) => {
            const bytes = bytesOf(buffers[name]);
            return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
          };
          if (!kernel.cpu) throw new Error(`${kernel.id} has no CPU version`);
          kernel.cpu({
            params,
            u32: words,
            f32: (name) => {
              const { buffer, byteOffset, length } = words(name);
              return new Float32Array(buffer, byteOffset, length);
            },
          });
        },
      });
    },
    read(ranges: readonly BufferRange[]) {
      flush();
      const copy = ({ buffer, byteOffset = 0, byteLength, into }: BufferRange) => {
        if (!into) return bytesOf(buffer).slice(byteOffset, byteOffset + byteLength);
        const answer = new Uint8Array(into, 0, byteLength);
        answer.set(bytesOf(buffer).subarray(byteOffset, byteOffset + byteLength));
        return answer;
      };
      return Promise.resolve(spend('readback', () => ranges.map(copy)));
    },
    close() {
      queue = [];
    },
  };
}

/** Elements of a strip of a dispatch. */
function stepOf<P extends string, B extends string>(
  { unit }: Kernel<P, B>,
  params: Record<P, number>,
  elements: number,
): number {
  if (!unit) return elements;
  const whole = unit(params);
  return Math.max(1, Math.floor(STRIP / whole)) * whole;
}

/** Runs dispatches in order; neighbors in the same strips of the same elements run strip by strip. */
function runAll(queue: readonly Queued[]): void {
  for (let i = 0; i < queue.length; ) {
    const first = queue[i]!;
    if (!first.strip) {
      first.whole();
      i++;
      continue;
    }
    let end = i + 1;
    const { elements, step } = first;
    const goesAlong = (q: Queued) => q.strip && q.elements === elements && q.step === step;
    while (end < queue.length && goesAlong(queue[end]!)) end++;
    for (let begin = 0; begin < elements; begin += step) {
      const n = Math.min(step, elements - begin);
      for (let q = i; q < end; q++) queue[q]!.strip!(begin, n);
    }
    i = end;
  }
}
