/** One tensor on both engines: the bits are the same, and a difference is found where there is one. */
import { expect, test } from 'vitest';
import { diskFolder } from '../../e2e/disk-folder';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import type { Recipe } from '../formats/recipe';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import { runVerifyTensor } from './tensor-check-job';

const TENSOR = 'model.layers.1.mlp.down_proj.weight';
const ELEMENTS = 128 * 352;
const RECIPE: Recipe = {
  mergeMethod: 'ties',
  baseModel: 'samples/base',
  models: ['samples/base+samples/kitchen', 'samples/workshop'].map((model) => ({
    model,
    parameters: { weight: 0.7, density: 0.3 },
  })),
  parameters: {},
  amalgam: {},
};

async function verify(name: string, open?: readonly (() => Backend)[]) {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const one of ['base', 'kitchen', 'workshop']) {
    await models.add(await diskFolder(`samples/${one}`, `public/samples/${one}`));
  }
  const plan = await makePlan(RECIPE, (ref) => models.open(ref), methodById);
  const { signal } = new AbortController();
  const onProgress = () => undefined;
  return runVerifyTensor(name, { plan, models, signal, onProgress, ...(open ? { open } : {}) });
}

test('the engines give the same bits, and each says how long it took', async () => {
  const report = await verify(TENSOR);
  expect(report).toMatchObject({ tensor: TENSOR, differing: 0, largest: 0 });
  expect(report.elements).toBe(ELEMENTS);
  expect(report.engines.map(({ engine }) => engine)).toEqual(['cpu', 'webgpu']);
  expect(report.engines.every(({ seconds }) => seconds > 0)).toBe(true);
});

test('bits that are not the same are counted, and the largest difference is told', async () => {
  const wrong = () => {
    const engine = createCpuBackend();
    const { read } = engine;
    // the first element that is read back is another one: 0.5 in BF16
    engine.read = async (ranges) => {
      const answers = await read(ranges);
      answers.find(({ byteLength }) => byteLength === 2 * ELEMENTS)?.set([0x00, 0x3f]);
      return answers;
    };
    return engine;
  };
  const report = await verify(TENSOR, [createCpuBackend, wrong]);
  expect(report.differing).toBe(1);
  expect(report.largest).toBeGreaterThan(0.3);
  expect(report.largest).toBeLessThan(0.7);
});

test('a tensor that is not computed is refused in words', async () => {
  await expect(verify('nothing')).rejects.toMatchObject({
    code: 'Usage',
    message: expect.stringContaining('no tensor nothing'),
  });
});
