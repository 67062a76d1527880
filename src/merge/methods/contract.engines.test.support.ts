/** The part of a method's contract that needs both engines: the same bytes and the same report. */
import { expect, it } from 'vitest';
import type { Backend } from '../../backend/backend';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import type { WeightDtype } from '../../formats/dtype';
import type { MergeMethod } from '../method';
import { contractModel, DTYPES, judgeOf, mergeModel, variantsOf } from './contract.cases';

const cpu = createCpuBackend();
const SHAPES = [[130, 64], [31, 17], [4095], [4096], [4097], [257], [255], [3], [1], [0], [4, 6, 10]];
/** Where blocks and rows end is the same for all settings and dtypes of a method: these need one tensor of each kind. */
const FEW_SHAPES = [[130, 64], [31, 17], [4097], [3]];

/**
 * Declares the tests of one method. Defaults in every dtype; a setting in one of them, in turn: what a method computes
 * knows no dtype, tensors are decoded before it and encoded after it.
 */
export function engineTests(method: MergeMethod, gpu: () => Backend, judge = judgeOf(method)): void {
  const variants = variantsOf(method, judge);
  const inDtype = (dtype: WeightDtype) => {
    const turn = DTYPES.indexOf(dtype);
    return [...variants.entries()].filter(([i]) => i === 0 || i % DTYPES.length === turn);
  };

  it.each(DTYPES)('WebGPU = processor to the bit: %s', async (dtype) => {
    for (const [i, variant] of inDtype(dtype)) {
      const model = contractModel(method, variant, dtype, i === 0 && dtype === 'BF16' ? SHAPES : FEW_SHAPES);
      expect(await mergeModel(gpu(), method, model), variant.name).toEqual(
        await mergeModel(cpu, method, model),
      );
    }
  });

  it.each(DTYPES)('subnormals, signed zeros, the largest numbers: %s', async (dtype) => {
    for (const [, variant] of inDtype(dtype)) {
      const model = contractModel(method, variant, dtype, [[31, 17], [1]], 'extreme');
      const carried = (engine: Backend) => mergeModel(engine, method, model, 65_536, 'carry');
      expect(await carried(gpu()), variant.name).toEqual(await carried(cpu));
    }
  });
}
