import type { BufferRange, ComputeEngine, Dispatch, EngineBuffer, EngineSeconds } from '../compute/engine';
import type { Kernel } from '../compute/kernel';
import { AmalgamError } from '../errors';

interface CpuBuffer extends EngineBuffer {
  words: Uint32Array<ArrayBuffer>;
  floats: Float32Array<ArrayBuffer>;
}

/** Typed arrays of a JavaScript engine reach 2^33 bytes, but a single large allocation is the first thing to fail. */
const MAX_BUFFER_BYTES = 1 << 30;

/** The engine on typed arrays: every kernel's twin, run at once on the calling thread. */
export function createCpuEngine(): ComputeEngine {
  const seconds: EngineSeconds = { upload: 0, compute: 0, readback: 0 };
  const spend = <T>(stage: keyof EngineSeconds, work: () => T): T => {
    const begin = performance.now();
    const result = work();
    seconds[stage] += (performance.now() - begin) / 1000;
    return result;
  };
  return {
    kind: 'cpu',
    adapter: 'typed arrays',
    software: true,
    maxBufferBytes: MAX_BUFFER_BYTES,
    seconds,
    allocate(byteLength, label): CpuBuffer {
      const size = Math.max(4, Math.ceil(byteLength / 4) * 4);
      try {
        const memory = new ArrayBuffer(size);
        return { label, byteLength: size, words: new Uint32Array(memory), floats: new Float32Array(memory) };
      } catch (cause) {
        throw new AmalgamError(
          'GpuOutOfMemory',
          `No memory for ${label} (${size} bytes).`,
          'Close other tabs or choose a smaller tile.',
          { cause },
        );
      }
    },
    free(buffer) {
      const own = buffer as CpuBuffer;
      own.words = new Uint32Array(0);
      own.floats = new Float32Array(0);
    },
    write(buffer, byteOffset, data) {
      spend('upload', () => bytesOf(buffer).set(data, byteOffset));
    },
    clear(buffer, byteOffset = 0, byteLength = buffer.byteLength - byteOffset) {
      bytesOf(buffer).fill(0, byteOffset, byteOffset + byteLength);
    },
    run<P extends string, B extends string>(
      kernel: Kernel<P, B>,
      { params, buffers, groups }: Dispatch<P, B>,
    ) {
      spend('compute', () =>
        kernel.cpu({
          params,
          groups,
          u32: (name) => (buffers[name] as CpuBuffer).words,
          f32: (name) => (buffers[name] as CpuBuffer).floats,
        }),
      );
    },
    read(ranges: readonly BufferRange[]) {
      const copy = ({ buffer, byteOffset = 0, byteLength }: BufferRange) =>
        bytesOf(buffer).slice(byteOffset, byteOffset + byteLength);
      return Promise.resolve(spend('readback', () => ranges.map(copy)));
    },
    close() {},
  };
}

function bytesOf(buffer: EngineBuffer): Uint8Array<ArrayBuffer> {
  const { words } = buffer as CpuBuffer;
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}
