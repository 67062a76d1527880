/** The part of a method's contract that needs both engines: the same bytes and the same report. */
import { expect, it } from 'vitest';
import type { ComputeEngine } from '../../compute/engine';
import { createCpuEngine } from '../../cpu/cpu-engine';
import type { MergeMethod } from '../method';
import { contractModel, DTYPES, mergeModel, variantsOf } from './contract.cases';

const cpu = createCpuEngine();
const SHAPES = [[130, 64], [31, 17], [4095], [4096], [4097], [257], [255], [3], [1], [0], [4, 6, 10]];

/** Declares the tests of one method. */
export function engineTests(method: MergeMethod, gpu: () => ComputeEngine): void {
  const variants = variantsOf(method);

  it.each(DTYPES)('WebGPU = typed arrays to the bit: %s', async (dtype) => {
    for (const variant of variants) {
      const model = contractModel(method, variant, dtype, SHAPES);
      expect(await mergeModel(gpu(), method, model), variant.name).toEqual(
        await mergeModel(cpu, method, model),
      );
    }
  });

  it.each(DTYPES)('subnormals, signed zeros, the largest numbers: %s', async (dtype) => {
    for (const variant of variants) {
      const model = contractModel(method, variant, dtype, [[31, 17], [257], [3], [1]], 'extreme');
      const carried = (engine: ComputeEngine) => mergeModel(engine, method, model, 65_536, 'carry');
      expect(await carried(gpu()), variant.name).toEqual(await carried(cpu));
    }
  });
}
