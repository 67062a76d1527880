/** Runs a kernel of the forward pass on both engines and compares the results. */
import { expect } from 'vitest';
import type { WeightDtype } from '../../formats/dtype';
import { encodeFromF32 } from '../../formats/half';
import type { Backend } from '../backend';
import type { Kernel } from '../kernel';
import { philox } from '../philox';

/** Uniform in (−size, size). */
export function floats(n: number, seed: number, size = 1): Float32Array<ArrayBuffer> {
  const words = new Uint32Array(4);
  return Float32Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 3, words);
    return (words[0]! / 2 ** 31 - 1) * size;
  });
}

export function packed(values: Float32Array, dtype: WeightDtype): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(values.length * (dtype === 'F32' ? 4 : 2));
  encodeFromF32(values, dtype, bytes);
  return bytes;
}

export type Contents = Record<
  string,
  Float32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>
>;

export async function after(
  engine: Backend,
  kernel: Kernel,
  contents: Contents,
  params: Record<string, number>,
  output: string,
  work: { groups?: number; elements?: number } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const buffers = Object.fromEntries(
    Object.entries(contents).map(([name, data]) => {
      const buffer = engine.allocate(Math.ceil(data.byteLength / 16) * 16, name);
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      const even = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
      even.set(bytes);
      engine.write(buffer, 0, even);
      return [name, buffer];
    }),
  );
  engine.run(kernel, { params, buffers, ...work });
  const [bytes] = await engine.read([{ buffer: buffers[output]!, byteLength: contents[output]!.byteLength }]);
  for (const b of Object.values(buffers)) engine.free(b);
  return bytes!;
}

/** Runs a kernel on both engines and compares one buffer; returns the CPU's. */
export type ExpectClose = (
  kernel: object,
  contents: Contents,
  params: Record<string, number>,
  output?: string,
  work?: { groups: number; elements: number },
) => Promise<Float32Array>;

/** Compares with the given GPU engine, within the kernel's own tolerance. */
export function comparison(cpu: Backend, gpu: () => Backend): ExpectClose {
  return async (kernel, contents, params, output = 'y', work = undefined) => {
    const k = kernel as Kernel;
    const a = new Float32Array((await after(cpu, k, contents, params, output, work)).buffer);
    const b = new Float32Array((await after(gpu(), k, contents, params, output, work)).buffer);
    const largest = a.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    const worst = a.reduce((m, v, i) => Math.max(m, Math.abs(v - b[i]!)), 0);
    expect(largest).toBeGreaterThan(0);
    expect(worst / largest, `${k.id}: ${worst} of ${largest}`).toBeLessThanOrEqual(tolerance(k));
    expect(b.every(Number.isFinite)).toBe(true);
    return a;
  };
}

export function tolerance(kernel: Kernel): number {
  return Number(/Tolerance: ([\d.e-]+)/.exec(kernel.wgsl)![1]!.replace(/\.$/, ''));
}
