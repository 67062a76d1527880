import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { diskFolder } from '../../../e2e/disk-folder';
import { planInNode } from '../../../e2e/merge-in-node';
import { isPlainLambda, withLambda } from './plan-lambda';

const SAMPLES = fileURLToPath(new URL('../../../public/samples', import.meta.url));

test('a λ for each kind of tensor put into a plan makes the plan of that recipe', async () => {
  const names = ['base', 'kitchen', 'workshop'];
  const folders = await Promise.all(names.map((name) => diskFolder(name, join(SAMPLES, name))));
  const named = Object.fromEntries(folders.map((folder) => [folder.path, folder]));
  const planWith = async (lambda: number | { filter?: string; value: number }[]) => {
    const recipe = {
      ...{ merge_method: 'task_arithmetic', base_model: 'base', parameters: { lambda } },
      models: ['base+kitchen', 'workshop'].map((model) => ({ model, parameters: { weight: 1 } })),
    };
    return (await planInNode(JSON.stringify(recipe), SAMPLES, named)).plan;
  };
  const kinds = [{ filter: 'mlp', value: 0.5 }, { filter: 'norm', value: 0.2 }, { value: 0.8 }];
  const [made, wanted] = [withLambda(await planWith(1), kinds), await planWith(kinds)];
  expect(made.tensors).toEqual(wanted.tensors);
  expect(new Set(made.tensors.map(({ parameters }) => parameters.lambda))).toEqual(new Set([0.5, 0.2, 0.8]));
  expect(made.recipe).toEqual(wanted.recipe);
  expect([0.5, kinds, [0, 1], [{ value: [0, 1] }], 'auto', undefined].map(isPlainLambda)).toEqual([
    true,
    true,
    ...[false, false, false, false],
  ]);
});
