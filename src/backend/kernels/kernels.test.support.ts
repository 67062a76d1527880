/** Shared by the kernel tests: inputs that reach every corner of f32, and both engines side by side. */
import { expect } from 'vitest';
import { type WeightDtype, weightBytes } from '../../formats/dtype';
import { encodeFromF32 } from '../../formats/half';
import type { Backend } from '../backend';
import { exact } from '../exact';
import { createGpuBackend } from '../gpu/gpu-backend';
import type { Kernel } from '../kernel';
import { philox } from '../philox';

const opened = new Map<string, Promise<Backend>>();

/**
 * The graphics device of the tests, one for all files of a process: its kernels take longer to compile than to run.
 * `real`: in the guise of a real one, so that the barrier forms of the kernels run. Nobody closes it.
 */
export function sharedGpu(guise: 'software' | 'real' = 'software'): Promise<Backend> {
  const open = async () =>
    Object.create(await createGpuBackend(), {
      close: { value: () => {} },
      ...(guise === 'real' ? { software: { value: false } } : {}),
    }) as Backend;
  const device = opened.get(guise) ?? open();
  opened.set(guise, device);
  return device;
}

/**
 * Numbers over a wide range of exponents, with repeats and zeros of both signs; every fourth block is close to the
 * smallest normal numbers, where products and differences would be subnormal.
 */
export function floats(n: number, seed: number): Float32Array<ArrayBuffer> {
  const words = new Uint32Array(4);
  return Float32Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 1, words);
    if (words[3]! % 17 === 0) return words[3]! % 2 ? 0 : -0;
    if (words[3]! % 5 === 0) return ((words[0]! % 9) - 4) / 64; // equal magnitudes
    const tiny = seed % 2 === 1 && (i >> 6) % 4 === 1;
    const exponent = (words[1]! % 24) - (tiny ? 125 : 18);
    return exact((words[0]! / 2 ** 31 - 1) * 2 ** exponent); // as decode leaves values: nothing subnormal
  });
}

export function words(n: number, seed: number): Uint32Array<ArrayBuffer> {
  const out = new Uint32Array(4);
  return Uint32Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 2, out);
    return out[0]!;
  });
}

/** The first `n` values in a dtype, as the kernels pack them, in `words` words. */
export function packedWords(values: Float32Array, n: number, dtype: WeightDtype, words: number) {
  const packed = new Uint32Array(words);
  encodeFromF32(values.subarray(0, n), dtype, new Uint8Array(packed.buffer, 0, n * weightBytes(dtype)));
  return packed;
}

/**
 * The first word in which two buffers differ, or −1. Which NaN arithmetic makes differs between devices, so in buffers of
 * numbers two NaN are the same.
 */
export function firstDifference(name: string, a: Uint32Array, b: Uint32Array): number {
  const notANumber = (word: number) => (word & 0x7fffffff) > 0x7f800000;
  const numbers = name === 'values' || name === 'sums';
  return a.findIndex((word, i) => word !== b[i] && !(numbers && notANumber(word) && notANumber(b[i]!)));
}

export type Contents = Record<string, Float32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>>;

/** Runs the kernel on one engine and returns the bytes of every buffer. */
export async function bytesAfter(
  engine: Backend,
  kernel: Kernel,
  contents: Contents,
  params: Record<string, number>,
  groups?: number,
) {
  const buffers = Object.fromEntries(
    Object.entries(contents).map(([name, data]) => {
      const buffer = engine.allocate(data.byteLength, name);
      engine.write(buffer, 0, new Uint8Array(data.buffer));
      return [name, buffer];
    }),
  );
  engine.run(kernel, { params, buffers, ...(groups === undefined ? {} : { groups }) });
  const all = await engine.read(Object.values(buffers).map((b) => ({ buffer: b, byteLength: b.byteLength })));
  for (const b of Object.values(buffers)) engine.free(b);
  return Object.fromEntries(Object.keys(buffers).map((name, i) => [name, new Uint32Array(all[i]!.buffer)]));
}

/** Runs a kernel on both engines and expects the same bits in every buffer; resolves to them. */
export function sameOnBoth(engines: () => [Backend, Backend]) {
  return async (kernel: Kernel, contents: Contents, params: Record<string, number>, groups?: number) => {
    const [cpu, gpu] = engines();
    const a = await bytesAfter(cpu, kernel, contents, params, groups);
    const b = await bytesAfter(gpu, kernel, contents, params, groups);
    for (const name of Object.keys(a)) {
      const x = a[name]!;
      const y = b[name]!;
      const at = firstDifference(name, x, y);
      expect(at, `${kernel.id}.${name}[${at}]: cpu ${x[at]?.toString(16)} gpu ${y[at]?.toString(16)}`).toBe(
        -1,
      );
    }
    return a;
  };
}
