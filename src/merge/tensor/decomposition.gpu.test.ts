import { expect, test } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { sharedGpu } from '../../backend/kernels/kernels.test.support';
import { decompose } from './decomposition';
import { matrixOf, onEngine } from './matrix.test.support';

const gpu = await sharedGpu();

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
