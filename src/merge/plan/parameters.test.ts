import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { diskFolder, SAMPLES } from '../../../e2e/disk-folder';
import { planInNode } from '../../../e2e/merge-in-node';
import type { Recipe } from '../../formats/recipe';
import { openerOf, recipeOf, safetensors } from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { indexedFiles } from '../../write/shard-plan';
import type { ParameterSpec } from '../method';
import { methodById } from '../methods';
import { evaluateSetting, layerPosition, outsidePosition, resolveParameters } from './parameters';
import { isPlainLambda, withLambda } from './plan-lambda';
import { makePlan } from './recipe-plan';
import { whole } from './sound-inputs.test.support';

describe('positions', () => {
  it('spreads the layers of a slice over [0, 1]', () => {
    expect([0, 1, 2, 3, 4].map((i) => layerPosition(i, 5))).toEqual([0, 0.25, 0.5, 0.75, 1]);
    expect(layerPosition(0, 1)).toBe(1);
  });

  it('puts what is outside the layers where the recipe says', () => {
    expect(outsidePosition('before', 'mergekit')).toBe(0);
    expect(outsidePosition('after', 'mergekit')).toBe(0);
    expect(outsidePosition('before', 'nearest')).toBe(0);
    expect(outsidePosition('after', 'nearest')).toBe(1);
  });
});

describe('evaluateSetting', () => {
  it('interpolates a gradient', () => {
    expect(evaluateSetting([0, 0.5, 1], 'x', 0.25)).toBe(0.25);
    expect(evaluateSetting([1, 0.2], 'x', 0.5)).toBeCloseTo(0.6, 15);
    expect(evaluateSetting([0.2, 0.9, 0.4], 'x', 0.75)).toBeCloseTo(0.65, 15);
    expect(evaluateSetting([3], 'x', 0.4)).toBe(3);
  });

  it('hits every point of a gradient exactly and stays between neighbors', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 1, maxLength: 8 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (points, t) => {
          const value = evaluateSetting(points, 'x', t) as number;
          expect(value).toBeGreaterThanOrEqual(Math.min(...points) - 1e-12);
          expect(value).toBeLessThanOrEqual(Math.max(...points) + 1e-12);
          expect(evaluateSetting(points, 'x', 0)).toBeCloseTo(points[0]!, 12);
          expect(evaluateSetting(points, 'x', 1)).toBeCloseTo(points.at(-1)!, 12);
        },
      ),
    );
  });

  it('takes the first filter that is a substring of the name', () => {
    const setting = [
      { filter: 'self_attn', value: [0, 0.5, 1] },
      { filter: 'mlp', value: 2 },
      { filter: '*', value: 0.25 },
      { value: 9 },
    ];
    expect(evaluateSetting(setting, 'model.layers.1.self_attn.q_proj.weight', 0.5)).toBe(0.5);
    expect(evaluateSetting(setting, 'model.layers.1.mlp.up_proj.weight', 0.5)).toBe(2);
    expect(evaluateSetting(setting, 'model.norm.weight', 0)).toBe(0.25);
    expect(evaluateSetting([{ filter: 'mlp', value: 1 }], 'model.norm.weight', 0)).toBeUndefined();
  });
});

describe('resolveParameters', () => {
  const specs: Record<string, ParameterSpec> = {
    weight: { kind: 'number', label: 'weight', help: '', min: -100, max: 100 },
    density: { kind: 'number', label: 'density', help: '', min: 0, max: 1, default: 1 },
    count: { kind: 'number', label: 'count', help: '', min: 0, max: 9, default: 1, integer: true },
    normalize: { kind: 'boolean', label: 'normalize', help: '', default: true },
    rescale: {
      kind: 'choice',
      label: 'rescale',
      help: '',
      default: 'none',
      choices: [
        { value: 'none', label: '' },
        { value: 'l1', label: '' },
      ],
      booleans: { true: 'l1', false: 'none' },
    },
  };
  const resolve = (...levels: Parameters<typeof resolveParameters>[1][]) =>
    resolveParameters(specs, levels.flat(), 'model.layers.0.mlp.up_proj.weight', 0.5);

  it('prefers the source over the slice over the recipe over the default', () => {
    const { values, faults } = resolve([
      { weight: 1 },
      { weight: 2, density: 0.5 },
      { density: 0.1, normalize: false },
    ]);
    expect(faults).toEqual([]);
    expect(values).toEqual({ weight: 1, density: 0.5, count: 1, normalize: false, rescale: 'none' });
  });

  it('passes over a level whose filters all miss', () => {
    expect(resolve([{ weight: [{ filter: 'self_attn', value: 1 }] }, { weight: 3 }]).values.weight).toBe(3);
    expect(resolve([{ weight: [{ filter: 'self_attn', value: 1 }] }]).faults).toEqual([
      { parameter: 'weight', reason: 'is missing and has no default' },
    ]);
  });

  it('understands the booleans of mergekit for a choice', () => {
    expect(resolve([{ weight: 1, rescale: true }]).values.rescale).toBe('l1');
    expect(resolve([{ weight: 1, rescale: false }]).values.rescale).toBe('none');
    expect(resolve([{ weight: 1, rescale: 'l1' }]).values.rescale).toBe('l1');
  });

  it.each([
    [{ weight: Number.NaN }, 'must be a number, not NaN'],
    [{ weight: 'much' }, 'must be a number, not "much"'],
    [{ weight: 'much' }, 'must be a number, not "much"'],
    [{ weight: [] }, 'must be a number, not NaN'],
    [{ weight: 101 }, 'must lie between -100 and 100, not 101'],
    [{ weight: Number.POSITIVE_INFINITY }, 'must lie between -100 and 100, not Infinity'],
    [{ weight: 1, density: [0, 3] }, 'must lie between 0 and 1, not 1.5'],
    [{ weight: 1, count: 1.5 }, 'must be a whole number, not 1.5'],
    [{ weight: 1, normalize: 'often' }, 'must be true or false, not "often"'],
    [{ weight: 1, rescale: 'l2' }, 'must be one of none, l1, not "l2"'],
    [{ weight: 1, rescale: 'some' }, 'must be one of none, l1, not "some"'],
  ])('refuses %j', (level, reason) => {
    expect(resolve([level]).faults.map((f) => f.reason)).toEqual([reason]);
  });
});

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

describe('modules behind the body of a sentence encoder', () => {
  const encoder = (path: string, fill: number, file = 'model.safetensors') =>
    whole(path, {
      files: { 'modules.json': '[]', [`2_Dense/${file}`]: safetensors({ w: ['F32', [2]] }, fill) },
    });
  const plan = (recipe: Partial<Recipe>, ...folders: ModelFolder[]) =>
    makePlan({ ...recipeOf(['m']), ...recipe }, openerOf(...folders), methodById);

  test('are merged as other tensors, into a file of their own that no index names', async () => {
    const { tensors, shards, extras, problems } = await plan(
      { amalgam: { shardBytes: 1000 } },
      encoder('base', 0),
      encoder('m', 1),
    );
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(tensors.at(-1)).toMatchObject({ name: '2_Dense/w' });
    expect(tensors.at(-1)!.copy).toBeUndefined();
    const { file, header } = shards.at(-1)!;
    expect(file).toBe('2_Dense/model.safetensors');
    expect(Object.keys(JSON.parse(new TextDecoder().decode(header.subarray(8))))).toContain('w');
    expect(shards[0]!.file).toBe(`model-00001-of-${String(shards.length - 1).padStart(5, '0')}.safetensors`);
    expect(indexedFiles(shards)).toHaveLength(shards.length - 1);
    expect(extras.map(({ path }) => path)).not.toContain(file);
    expect(extras.map(({ path }) => path)).toContain('modules.json');
  });

  test('of one model only, as a pickle and in GGUF they are refused by name', async () => {
    const errors = async (recipe: Partial<Recipe>, ...folders: ModelFolder[]) =>
      (await plan(recipe, ...folders)).problems
        .filter(({ severity }) => severity === 'error')
        .map(({ message, tensors = [] }) => `${message} ${tensors.join(' ')}`);
    expect(await errors({}, encoder('base', 0), whole('m'))).toEqual([expect.stringMatching(/2_Dense\/w/)]);
    const pickled = await errors({}, encoder('base', 0, 'pytorch_model.bin'), whole('m'));
    expect(pickled).toEqual([expect.stringMatching(/2_Dense as a pickle only/)]);
    const gguf = await errors({ amalgam: { gguf: 'F16' } }, encoder('base', 0), encoder('m', 1));
    expect(gguf).toEqual([expect.stringMatching(/no place for 2_Dense\//)]);
  });
});
