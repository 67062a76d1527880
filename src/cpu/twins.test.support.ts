import { expect } from 'vitest';
import type { ComputeEngine } from '../compute/engine';
import { blockCount, type Kernel } from '../compute/kernel';
import { bytesAfter, type Contents } from '../compute/kernels/kernels.test.support';
import type { StripKernel } from './strips';

/**
 * Runs a kernel of `kernels` in WebAssembly and its twin over the same contents, and expects the same bits.
 * @param tested gets the kernel's id
 */
export function sameAsTwin(
  engine: ComputeEngine,
  kernels: ReadonlyMap<string, StripKernel>,
  tested: Set<string>,
) {
  return async (
    declared: unknown,
    contents: () => Contents,
    params: Record<string, number>,
    elements: number,
    groups = blockCount(elements),
  ): Promise<void> => {
    const kernel = declared as Kernel;
    expect(kernels.get(kernel.id)?.fits?.(params) ?? kernels.has(kernel.id)).toBe(true);
    tested.add(kernel.id);
    const found = await bytesAfter(engine, kernel, contents(), params, groups, elements);
    const twin = contents();
    const view = (name: string) => twin[name]!;
    kernel.cpu({
      params,
      groups,
      u32: (name) => new Uint32Array(view(name).buffer),
      f32: (name) => new Float32Array(view(name).buffer),
    });
    for (const name of Object.keys(twin)) {
      const expected = new Uint32Array(view(name).buffer);
      const at = found[name]!.findIndex((word, i) => word !== expected[i]);
      const [a, b] = [found[name]![at], expected[at]].map((word) => word?.toString(16));
      expect(at, `${kernel.id}.${name}[${at}] of ${elements}: WebAssembly ${a}, twin ${b}`).toBe(-1);
    }
  };
}
