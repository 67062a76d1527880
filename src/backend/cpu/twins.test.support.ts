import { expect } from 'vitest';
import type { Backend } from '../backend';
import { blockCount, type Kernel } from '../kernel';
import { after, type Contents as PackedContents, tolerance } from '../kernels/forward-kernels.test.fixture';
import { bytesAfter, type Contents, firstDifference } from '../kernels/kernels.test.support';

/**
 * Runs a kernel in WebAssembly and its twin over the same contents, and expects the same bits.
 */
export function sameAsTwin(engine: Backend) {
  return async (
    declared: unknown,
    contents: () => Contents,
    params: Record<string, number>,
    elements: number,
    groups = blockCount(elements),
  ): Promise<void> => {
    const kernel = declared as Kernel;
    expect(kernel.wasm).toBeDefined();
    const found = await bytesAfter(engine, kernel, contents(), params, groups, elements);
    const twin = contents();
    const view = (name: string) => twin[name]!;
    kernel.cpu!({
      params,
      groups,
      u32: (name) => new Uint32Array(view(name).buffer),
      f32: (name) => new Float32Array(view(name).buffer),
    });
    for (const name of Object.keys(twin)) {
      const expected = new Uint32Array(view(name).buffer);
      const at = firstDifference(name, found[name]!, expected);
      const [a, b] = [found[name]![at], expected[at]].map((word) => word?.toString(16));
      expect(at, `${kernel.id}.${name}[${at}] of ${elements}: WebAssembly ${a}, twin ${b}`).toBe(-1);
    }
  };
}

/**
 * Runs a kernel in WebAssembly and its twin over the same contents, and expects what they leave in a buffer
 * to agree within the kernel's tolerance. Returns what the kernel left.
 */
export function closeToTwin(engine: Backend) {
  return async (
    declared: unknown,
    contents: () => PackedContents,
    params: Record<string, number>,
    work: { groups: number; elements: number },
    output = 'y',
  ): Promise<Float32Array> => {
    const kernel = declared as Kernel;
    expect(kernel.wasm).toBeDefined();
    const found = new Float32Array((await after(engine, kernel, contents(), params, work, output)).buffer);
    const twin = contents();
    kernel.cpu!({
      params,
      groups: work.groups,
      u32: (name) => new Uint32Array(twin[name]!.buffer),
      f32: (name) => new Float32Array(twin[name]!.buffer),
    });
    const expected = new Float32Array(twin[output]!.buffer);
    const largest = expected.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    const worst = expected.reduce((m, v, i) => Math.max(m, Math.abs(v - found[i]!)), 0);
    expect(largest).toBeGreaterThan(0);
    expect(worst / largest, `${kernel.id}: ${worst} of ${largest}`).toBeLessThanOrEqual(tolerance(kernel));
    return found;
  };
}
