import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Backend } from '../../backend/backend';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { createGpuBackend } from '../../backend/gpu/gpu-backend';
import { decompose } from './decomposition';
import { matrixOf, onEngine } from './delta.test.support';

let gpu: Backend;
beforeAll(async () => {
  gpu = await createGpuBackend();
});
afterAll(() => gpu.close());

test.each(['exact', 'randomized'] as const)(
  '%s: both engines give the same factors to the bit',
  async (way) => {
    const a = matrixOf(
      130,
      90,
      Array.from({ length: 90 }, (_, i) => (i + 1) ** -0.5),
    );
    const options = { count: 6, seed: 3, name: 'w', way };
    const one = await decompose(onEngine(createCpuBackend(), a), options);
    const two = await decompose(onEngine(gpu, a), options);
    expect(two.s).toEqual(one.s);
    expect(two.u.data).toEqual(one.u.data);
    expect(two.v.data).toEqual(one.v.data);
  },
);
