/** Every method on WebGPU and on typed arrays: the same bytes and the same report, whatever the numbers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ComputeEngine } from '../../compute/engine';
import { createCpuEngine } from '../../cpu/cpu-engine';
import { createGpuEngine } from '../../gpu/gpu-engine';
import { contractModel, DTYPES, mergeModel, variantsOf } from './contract.cases';
import { methods } from './index';

let gpu: ComputeEngine;
const cpu = createCpuEngine();
beforeAll(async () => {
  gpu = await createGpuEngine();
});
afterAll(() => gpu.close());

const SHAPES = [[130, 64], [31, 17], [4095], [4096], [4097], [257], [255], [3], [1], [0], [4, 6, 10]];

describe.each(methods.map((m) => [m.id, m] as const))('%s', (_, method) => {
  const variants = variantsOf(method);

  it.each(DTYPES)('WebGPU = typed arrays to the bit: %s', async (dtype) => {
    for (const variant of variants) {
      const model = contractModel(method, variant, dtype, SHAPES);
      expect(await mergeModel(gpu, method, model), variant.name).toEqual(
        await mergeModel(cpu, method, model),
      );
    }
  });

  it.each(DTYPES)('subnormals, signed zeros, the largest numbers: %s', async (dtype) => {
    for (const variant of variants) {
      const model = contractModel(method, variant, dtype, [[31, 17], [257], [3], [1]], 'extreme');
      const [a, b] = [
        await mergeModel(gpu, method, model, 65_536, 'carry'),
        await mergeModel(cpu, method, model, 65_536, 'carry'),
      ];
      expect(a, variant.name).toEqual(b);
    }
  });
});
