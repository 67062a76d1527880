import { expect } from 'vitest';
import type { Backend } from '../backend';
import type { Kernel } from '../kernel';
import { after, type Contents, tolerance } from '../kernels/forward-kernels.test.fixture';
import { REFERENCES } from '../kernels/references.test.support';

/** The kernel's id without the form it is in: what it computes. */
const subject = (id: string) => id.replace(/-(block|line)\b/, '');

/**
 * Runs a kernel in WebAssembly and its formula in f64 over the same contents, and expects what they leave in a buffer to
 * agree within the kernel's tolerance. Returns what the kernel left.
 */
export function closeToReference(engine: Backend) {
  return async (
    declared: unknown,
    contents: () => Contents,
    params: Record<string, number>,
    output = 'y',
    tiles?: number,
  ): Promise<Float32Array> => {
    const kernel = declared as Kernel;
    expect(kernel.wasm).toBeDefined();
    const found = new Float32Array(
      (await after(engine, kernel, contents(), params, output, tiles ? { groups: 1, elements: tiles } : {}))
        .buffer,
    );
    const own = contents();
    const reference = REFERENCES[kernel.id] ?? REFERENCES[subject(kernel.id)]!;
    reference({
      params: { ...params, ...(tiles && { tiles }) },
      u32: (name) => new Uint32Array(own[name]!.buffer),
      f32: (name) => new Float32Array(own[name]!.buffer),
    });
    const expected = new Float32Array(own[output]!.buffer);
    const largest = expected.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    const worst = expected.reduce((m, v, i) => Math.max(m, Math.abs(v - found[i]!)), 0);
    expect(largest).toBeGreaterThan(0);
    expect(worst / largest, `${kernel.id}: ${worst} of ${largest}`).toBeLessThanOrEqual(tolerance(kernel));
    return found;
  };
}
