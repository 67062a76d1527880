/** Several engines at once give the bytes and the report of one; what fails fails at its turn, and nothing is left. */
import { describe, expect, it } from 'vitest';
import { createCpuEngine } from '../cpu/cpu-engine';
import { contractModel, mergeModel, variantsOf } from './methods/contract.cases';
import { linear } from './methods/linear';
import { ties } from './methods/ties';

const SHAPES = [[300, 64], [3], [65, 64], [0], [4097], [31, 17], [1], [130, 64]];
const lanes = (count: number) => Array.from({ length: count }, () => createCpuEngine());

describe('tensors under way at once', () => {
  it.each([2, 3, 8, 16])('%i engines: the bytes and the report of one', async (count) => {
    for (const method of [ties, linear]) {
      const model = contractModel(method, variantsOf(method)[0]!, 'BF16', SHAPES);
      const [engine, ...more] = lanes(count);
      const one = await mergeModel(createCpuEngine(), method, model, 4096);
      expect(await mergeModel(engine!, method, model, 4096, 'stop', more)).toEqual(one);
    }
  });

  it('the first tensor in order that fails names the failure', async () => {
    const model = contractModel(ties, variantsOf(ties)[0]!, 'F32', SHAPES);
    for (const index of [2, 4]) {
      const { models } = model.tensors[index]!;
      new Uint32Array(model.bytes.get(models[0]!.view.origin)!.buffer)[0] = 0x7fc00000;
    }
    const [engine, ...more] = lanes(4);
    await expect(mergeModel(engine!, ties, model, 4096, 'stop', more)).rejects.toMatchObject({
      code: 'NonFinite',
      message: expect.stringContaining('layers.2'),
    });
  });
});
