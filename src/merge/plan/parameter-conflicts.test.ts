import { expect, it } from 'vitest';
import type { RecipeParameters } from '../../formats/recipe';
import { openerOf, tinyModel } from '../../inputs/memory-models.test.support';
import { methodById } from '../methods';
import { makePlan } from './recipe-plan';

function planOf(mergeMethod: string, parameters: RecipeParameters, models: RecipeParameters[]) {
  const folders = [tinyModel('base'), ...models.map((_, i) => tinyModel(`m${i}`))];
  return makePlan(
    {
      mergeMethod,
      ...(methodById.get(mergeMethod)!.base === 'required' ? { baseModel: 'base' } : {}),
      models: models.map((own, i) => ({ model: `m${i}`, parameters: own })),
      parameters,
      amalgam: {},
    },
    openerOf(...folders),
    methodById,
  );
}

async function errorsOf(...recipe: Parameters<typeof planOf>) {
  const plan = await planOf(...recipe);
  return plan.problems.filter((p) => p.severity === 'error').map((p) => `${p.code}: ${p.message}`);
}

it.each<[string, RecipeParameters, RecipeParameters[], string]>([
  [
    'della',
    {},
    [{ weight: 1, density: 0.3, epsilon: 0.3 }],
    'ParameterConflict: della: epsilon 0.3 must be below min(density, 1 − density) = 0.3.',
  ],
  [
    'della_linear',
    {},
    [{ weight: 1, density: 0.9, epsilon: 0.15 }],
    'ParameterConflict: della_linear: epsilon 0.15 must be below min(density, 1 − density) = 0.1.',
  ],
  [
    'nuslerp',
    {},
    [{ weight: 0.5 }, { weight: -0.5 }],
    'ParameterConflict: nuslerp: the weights add up to 0.',
  ],
  [
    'multislerp',
    {},
    [{ weight: 0 }, { weight: 0 }],
    'ParameterConflict: multislerp: the weights add up to 0, and normalize_weights divides by their sum.',
  ],
  [
    'ties',
    {},
    [{ weight: 1, density: 0 }, { weight: 1 }],
    'NothingKept: density of m0 is 0 everywhere: nothing of it is kept.',
  ],
  [
    'ties',
    {},
    [{ weight: 1, density: -0.1 }],
    'ParameterInvalid: density of m0 must lie between 0 and 1, not -0.1.',
  ],
  [
    'della',
    {},
    [{ weight: 1, density: 0.5, epsilon: 0.5 }],
    'ParameterConflict: della: epsilon 0.5 must be below min(density, 1 − density) = 0.5.',
  ],
  [
    'linear',
    {},
    [{ weight: 0.5 }, { weight: -0.5 }],
    'WeightsCancel: linear: the weights add up to 0, and normalize divides by their sum.',
  ],
  ['gram', {}, [{ weight: 0 }, { weight: 0 }], 'WeightsCancel: gram: every weight is 0.'],
  ['gram', {}, [{ weight: -1 }, {}], 'ParameterInvalid: weight of m0 must lie between 0 and 100, not -1.'],
  ['nearswap', { t: 0 }, [{}], 'ParameterConflict: nearswap: t must be above 0.'],
  ['slerp', { t: 101 }, [{}], 'ParameterInvalid: t must lie between -100 and 100, not 101.'],
  ['slerp', {}, [{}], 'ParameterInvalid: t is missing and has no default.'],
  ['karcher', { max_iter: 2.5 }, [{}], 'ParameterInvalid: max_iter must be a whole number, not 2.5.'],
  [
    'ties',
    { majority_sign_method: 'frequency' },
    [{ weight: 1 }],
    'ParameterConflict: ties: majority_sign_method: frequency has no meaning in the semantics mergekit.',
  ],
  [
    'ties',
    { semantics: 'paper' },
    [{ weight: 1, density: [0.2, 0.8] }],
    'ParameterVaries: density of m0 changes from tensor to tensor, but it is measured on the whole model.',
  ],
  [
    'ties',
    { semantics: 'author' },
    [{ weight: 1 }],
    'ParameterInvalid: semantics must be one of mergekit, paper, peft, not "author".',
  ],
  [
    'ties',
    {},
    [{ weight: 1 }, { weight: -1 }],
    'WeightsCancel: ties: the weights add up to 0, and normalize divides by their sum.',
  ],
  ['sce', { select_topk: 1.1 }, [{}, {}], 'ParameterInvalid: select_topk must lie between 0 and 1, not 1.1.'],
])('%s %j %j', async (method, parameters, models, message) => {
  expect(await errorsOf(method, parameters, models)).toContain(message);
});

it.each<[string, RecipeParameters, RecipeParameters[]]>([
  [
    'della',
    {},
    [
      { weight: 1, density: 1 },
      { weight: 1, density: [{ filter: 'mlp', value: 0 }, { value: 1 }] },
    ],
  ],
  ['della', {}, [{ weight: 1, density: 0.5, epsilon: 0.49 }]],
  ['ties', { semantics: 'peft', majority_sign_method: 'frequency' }, [{ weight: 1 }, { weight: -1 }]],
  ['ties', {}, [{ weight: 1, density: [0.2, 0.8] }]],
  [
    'ties',
    { semantics: 'paper' },
    [
      { weight: [0, 1], density: 0.2 },
      { weight: 1, density: 0.3 },
    ],
  ],
])('takes %s %j %j', async (method, parameters, models) => {
  expect(await errorsOf(method, parameters, models)).toEqual([]);
});

it.each<[string, RecipeParameters[], string | undefined]>([
  [
    'ties',
    [{ weight: 1 }, { weight: 1, density: 0.2 }],
    'trims nothing of m0. Set a density below 1; 0.2 is',
  ],
  [
    'dare_linear',
    [{ weight: 1, density: 1 }, { weight: 1 }],
    'trims nothing of m0, m1. Set a density below 1; 0.5',
  ],
  [
    'ties',
    [
      { weight: 1, density: [1, 0.2] },
      { weight: 1, density: 0.9 },
    ],
    undefined,
  ],
  ['gram', [{ weight: 1 }, { weight: 1 }], undefined],
  ['linear', [{ weight: 1 }, { weight: 1 }], undefined],
])('a density of 1 where a method trims is warned of: %s %j', async (method, models, said) => {
  const { problems } = await planOf(method, {}, models);
  const found = problems.find(({ code }) => code === 'NothingTrimmed');
  expect(found && `${found.severity}: ${found.message} ${found.remedy}`).toEqual(
    said === undefined
      ? undefined
      : expect.stringContaining(`warning: Density 1, mergekit’s default, ${said}`),
  );
});
