import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';
import { CPU_ADAPTER } from '../../reports/backend';
import type { Backend, BackendBuffer, BackendSeconds, BufferRange, Dispatch } from '../backend';
import { type Kernel, STRIP, workOf } from '../kernel';
import { encodeWeights, packPanels } from '../kernels/matmul';
import { CpuMemory, instantiateKernels, type Range } from './cpu-memory';
import type { SharedRange, SharedWeights } from './shared-weights';

interface CpuBuffer extends BackendBuffer {
  range: Range | SharedRange | undefined;
}

/** Where weights lie that several threads reach; undefined for a buffer of this thread's memory. */
function sharedRange(buffer: BackendBuffer | undefined): SharedRange | undefined {
  const range = (buffer as CpuBuffer | undefined)?.range;
  return range && 'memory' in range ? range : undefined;
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

/** WebAssembly reaches 2^32 bytes, but a single large allocation is the first thing to fail. */
export const MAX_BUFFER_BYTES = 1 << 30;

/**
 * The engine on the processor, on the calling thread: kernels in WebAssembly, a few on typed arrays. Dispatches wait for the
 * next read and then go strip by strip through all of them; the bits are those of one
 * dispatch after the other.
 * @param shared where weights lie, so that other threads help with products by them
 */
export function createCpuBackend(shared?: SharedWeights): Backend {
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
    return 'memory' in range ? shared!.bytes(range) : memory.bytes(range);
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

  const allocate = (byteLength: number, label: string): CpuBuffer => {
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
  };

  /** A product by shared weights, or their layout. */
  const withThreads = <P extends string, B extends string>(
    kernel: Kernel<P, B>,
    { params, buffers }: Dispatch<P, B>,
    weights: SharedRange,
  ) => {
    const p = params as Record<string, number>;
    const at = buffers as Record<string, BackendBuffer>;
    if ((kernel as unknown) === packPanels) return shared!.pack(weights, p.dtype!, p.inputs!, p.outputs!);
    if ((kernel as unknown) === encodeWeights) {
      return shared!.encode(weights, p.dtype!, p.inputs!, p.outputs!, p.first!, bytesOf(at.raw!));
    }
    if (kernel.panels === undefined) throw new Error(`${kernel.id} does not know shared weights`);
    const [rows, inputs, outputs] = [p.rows!, p.inputs4! * 4, p.outputs!];
    const [xPitch, yPitch] = [p.x_stride4! * 16, p.y_stride! * 4];
    const shape = { rows, inputs, outputs, xPitch, yPitch, add: p.add!, scale: p.scale! };
    const first = p.w_first! * 4;
    const bias = p.biased === 1 ? bytesOf(at.bias!).subarray(first, first + outputs * 4) : undefined;
    const x = bytesOf(at.x!).subarray(0, (rows - 1) * xPitch + inputs * 4);
    const y = bytesOf(at.y!).subarray(p.y_begin! * 4);
    shared!.multiply({ ...shape, dtype: kernel.panels, weights, firstOutput: p.w_first! }, x, bias, y);
  };

  return {
    kind: 'cpu',
    adapter: CPU_ADAPTER,
    software: true,
    maxBufferBytes: MAX_BUFFER_BYTES,
    seconds,
    allocate,
    ...(shared && {
      residentBytes: shared.residentBytes,
      allocateWeights(byteLength: number, label: string): CpuBuffer {
        const size = Math.ceil(byteLength / 4) * 4;
        const range = shared.take(size);
        return range ? { label, byteLength: size, range } : allocate(byteLength, label);
      },
    }),
    free(buffer) {
      flush();
      const own = buffer as CpuBuffer;
      const { range } = own;
      if (range && 'memory' in range) shared!.give(range);
      else if (range) memory.give(range);
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
      const weights = sharedRange((buffers as Record<string, BackendBuffer>).weights);
      if (weights) {
        const whole = () => withThreads(kernel, dispatch, weights);
        queue.push({ buffers: Object.values(buffers), elements, step: elements, whole });
        return;
      }
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
      shared?.close();
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
