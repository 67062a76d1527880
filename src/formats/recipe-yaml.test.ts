import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { goldenFolder } from '../../e2e/goldens';
import type { Recipe } from './recipe';
import { formatRecipe } from './recipe-format';
import { parseRecipe } from './recipe-yaml';

const GOLDEN = goldenFolder('mergekit');

function recipeOf(text: string): Recipe {
  const { recipe, problems } = parseRecipe(text);
  expect(problems).toEqual([]);
  return recipe!;
}

describe('mergekit recipes', () => {
  test.each(readdirSync(GOLDEN).filter((name) => name.endsWith('.yml')))('%s is read and kept', (name) => {
    const text = readFileSync(`${GOLDEN}/${name}`, 'utf8');
    const recipe = recipeOf(text);
    const written = formatRecipe(recipe);
    expect(recipeOf(written)).toEqual(recipe);
    expect(formatRecipe(recipeOf(written))).toBe(written);
    // Nothing is lost: as data the two texts differ only in how they set the output dtype.
    const data = parseYaml(text) as Record<string, unknown>;
    const outDtype = data.dtype === 'float32' ? {} : { out_dtype: data.dtype };
    expect(parseYaml(written)).toEqual({ ...data, dtype: 'float32', ...outDtype });
  });

  test('addresses of the Hub are ids, wherever a recipe names a model', () => {
    const recipe = recipeOf(`
merge_method: linear
base_model: https://huggingface.co/owner/base
tokenizer_source: hf.co/owner/tok
models:
  - model: https://huggingface.co/owner/a/tree/v1+https://hf.co/owner/lora/blob/main/adapter_config.json
  - model: {model: {path: https://huggingface.co/owner/b, revision: v2}}
  - model: https://hub.test/owner/c
`);
    expect([recipe.baseModel, recipe.tokenizerSource, ...recipe.models!.map(({ model }) => model)]).toEqual([
      'owner/base',
      'owner/tok',
      'owner/a@v1+owner/lora@main',
      'owner/b@v2',
      'https://hub.test/owner/c',
    ]);
    const { problems } = parseRecipe(
      'merge_method: passthrough\nmodels:\n- model: https://hf.co/owner/a/tree/main/sub\n',
    );
    expect(problems).toMatchObject([
      { line: 3, message: expect.stringContaining('the folder sub inside of owner/a') },
    ]);
  });

  test('every field lands in its place', () => {
    const recipe = recipeOf(`
merge_method: ties
base_model: base
models:
  - model: owner/a@main
    parameters: {weight: 1, density: [0.2, 0.8], on: true, kind: word}
  - model: base+lora@v1
    parameters:
      weight:
        - filter: self_attn
          value: [0, 1]
        - value: 1.0e-5
parameters: {normalize: false, lambda: 0.9}
dtype: float32
out_dtype: bfloat16
tokenizer_source: base
name: a recipe
amalgam: {seed: 7, gradient_ends: nearest, shard_bytes: 1000000, non_finite: carry, include: [mlp], exclude: ["*.bias"]}
`);
    expect(recipe).toEqual({
      mergeMethod: 'ties',
      baseModel: 'base',
      models: [
        { model: 'owner/a@main', parameters: { weight: 1, density: [0.2, 0.8], on: true, kind: 'word' } },
        {
          model: 'base+lora@v1',
          parameters: { weight: [{ filter: 'self_attn', value: [0, 1] }, { value: 1e-5 }] },
        },
      ],
      parameters: { normalize: false, lambda: 0.9 },
      outDtype: 'bfloat16',
      tokenizerSource: 'base',
      name: 'a recipe',
      amalgam: {
        seed: 7,
        gradientEnds: 'nearest',
        shardBytes: 1e6,
        nonFinite: 'carry',
        include: ['mlp'],
        exclude: ['*.bias'],
      },
    } satisfies Recipe);
  });

  test('slices', () => {
    expect(
      recipeOf(`
slices:
  - sources:
      - {model: a, layer_range: [0, 2], parameters: {scale: 0.5}}
      - {model: b, layer_range: [1, 3]}
    base_model: b
    parameters: {t: 0.5}
merge_method: slerp
`).slices,
    ).toEqual([
      {
        sources: [
          { model: 'a', layerRange: [0, 2], parameters: { scale: 0.5 } },
          { model: 'b', layerRange: [1, 3], parameters: {} },
        ],
        baseModel: 'b',
        parameters: { t: 0.5 },
      },
    ]);
  });

  test('aliases are followed, empty optional settings are as good as absent', () => {
    const recipe = recipeOf(`
merge_method: linear
base_model:
parameters:
models:
  - model: a
    parameters: &p {weight: 0.5}
  - {model: b, parameters: *p}
`);
    expect(recipe.models?.[1]).toEqual({ model: 'b', parameters: { weight: 0.5 } });
    expect(recipe).not.toHaveProperty('baseModel');
  });
});

describe('problems', () => {
  const head = 'merge_method: linear\nmodels:\n  - model: a\n';
  test.each<[string, string, number, number, RegExp]>([
    ['a parameter at the root', `${head}t: 0.5\n`, 4, 1, /^t does not belong here/],
    ['a key in the wrong place', `${head}    weight: 1\n`, 4, 5, /^models\[0\]\.weight does not belong here/],
    [
      'a misspelled extension',
      `${head}amalgam: {sead: 1}\n`,
      4,
      11,
      /^amalgam\.sead is not known|^amalgam\.sead is not a known/,
    ],
    ['a chat template’s name', `${head}chat_template: vicuna\n`, 4, 16, /^chat_template cannot be “vicuna”/],
    [
      'a module without models',
      'merge_method: linear\nmodules: {text: {}, vision: {}}\n',
      2,
      17,
      /either models or slices/,
    ],
    [
      'a revision beside a model',
      `${head}    revision: main\n`,
      4,
      5,
      /^models\[0\]\.revision does not belong/,
    ],
    [
      'a pattern for a filter',
      `${head}parameters: {weight: [{pattern: mlp, value: 1}]}\n`,
      4,
      24,
      /weight\[0\]\.pattern does not belong/,
    ],
    ['a recipe of mergekit-moe', 'base_model: a\nexperts: []\n', 1, 1, /is one of mergekit-moe/],
    ['a recipe of mergekit-evolve', 'genome: {models: [a]}\n', 1, 1, /configuration of mergekit-evolve/],
    ['no method', 'models:\n  - model: a\n', 1, 1, /has no merge_method/],
    ['no models', 'merge_method: linear\n', 1, 1, /either models or slices/],
    [
      'models and slices',
      `${head}slices:\n  - sources: [{model: a, layer_range: [0, 1]}]\n`,
      5,
      3,
      /either models or slices/,
    ],
    ['no models in the list', 'merge_method: linear\nmodels: []\n', 1, 1, /either models or slices/],
    [
      'a model without name',
      'merge_method: linear\nmodels:\n  - parameters: {weight: 1}\n',
      3,
      5,
      /^models\[0\] has no model/,
    ],
    [
      'a number as model',
      'merge_method: linear\nmodels:\n  - model: 123\n',
      3,
      12,
      /models\[0\]\.model is not a string/,
    ],
    ['two adapters', 'merge_method: linear\nmodels:\n  - model: a+b+c\n', 3, 12, /more than one adapter/],
    ['an empty adapter', 'merge_method: linear\nmodels:\n  - model: a+\n', 3, 12, /empty part/],
    [
      'a model as a mapping without path',
      'merge_method: linear\nmodels:\n  - model: {lora: a}\n',
      3,
      12,
      /has no model/,
    ],
    ['an unknown dtype', `${head}dtype: int64\n`, 4, 8, /^dtype cannot be “int64”/],
    ['NaN', `${head}parameters: {weight: .nan}\n`, 4, 22, /^parameters\.weight is NaN/],
    ['infinity', `${head}parameters: {weight: -.inf}\n`, 4, 22, /is -Infinity/],
    ['NaN in a gradient', `${head}parameters: {weight: [0, .nan]}\n`, 4, 26, /weight\[1\] is NaN/],
    ['NaN in a filter', `${head}parameters: {weight: [{value: .nan}]}\n`, 4, 31, /weight\[0\]\.value is NaN/],
    [
      'a parameter without value',
      `${head}parameters:\n  weight:\n`,
      5,
      10,
      /^parameters\.weight has no value/,
    ],
    ['a lone filter', `${head}parameters: {weight: {filter: mlp, value: 1}}\n`, 4, 22, /is a mapping/],
    [
      'a filter with a third key',
      `${head}parameters: {weight: [{filter: mlp, value: 1, x: 1}]}\n`,
      4,
      47,
      /weight\[0\]\.x is not a known/,
    ],
    ['a gradient of words', `${head}parameters: {weight: [a, b]}\n`, 4, 22, /something other than numbers/],
    [
      'numbers and filters mixed',
      `${head}parameters: {weight: [1, {value: 1}]}\n`,
      4,
      22,
      /something other than numbers/,
    ],
    ['a list of lists', `${head}parameters: {weight: [[1], [2]]}\n`, 4, 22, /something other than numbers/],
    ['an empty gradient', `${head}parameters: {weight: []}\n`, 4, 22, /something other than numbers/],
    ['a parameter called __proto__', `${head}parameters: {__proto__: 1}\n`, 4, 14, /not a parameter’s name/],
    ['a key twice', `${head}dtype: float32\ndtype: float16\n`, 5, 1, /^dtype is given twice/],
    ['a merge key on a text', `${head}<<: float32\n`, 4, 1, /names no mapping/],
    [
      'a range backwards',
      'merge_method: x\nslices:\n  - sources: [{model: a, layer_range: [3, 1]}]\n',
      3,
      39,
      /is not a range/,
    ],
    [
      'a range of three',
      'merge_method: x\nslices:\n  - sources: [{model: a, layer_range: [0, 1, 2]}]\n',
      3,
      39,
      /is not a range/,
    ],
    [
      'a range with a fraction',
      'merge_method: x\nslices:\n  - sources: [{model: a, layer_range: [0, 1.5]}]\n',
      3,
      43,
      /not an integer/,
    ],
    [
      'a seed out of range',
      `${head}amalgam: {seed: 4294967296}\n`,
      4,
      17,
      /^amalgam\.seed is not an integer/,
    ],
    ['no patterns', `${head}amalgam: {exclude: []}\n`, 4, 20, /^amalgam\.exclude is empty/],
    ['a pattern that is no text', `${head}amalgam: {include: [1]}\n`, 4, 21, /include\[0\] is not a string/],
    ['an own tag', `${head}dtype: !!python/object:os.system x\n`, 4, 8, /not plain YAML: Unresolved tag/],
    ['broken YAML', `${head}dtype: "float32\n`, 5, 1, /not plain YAML/],
    ['a list at the root', '- a\n', 1, 1, /^The recipe is not a mapping/],
    ['nothing', '', 1, 1, /^The recipe is not a mapping/],
  ])('%s', (_, text, line, column, message) => {
    const { recipe, problems } = parseRecipe(text);
    expect(recipe).toBeUndefined();
    expect(problems).toContainEqual({
      line,
      column,
      message: expect.stringMatching(message) as string,
      hint: expect.stringMatching(/\w+/) as string,
    });
  });

  test('no problem is told twice, as brackets that are not closed would be', () => {
    const told = parseRecipe('{{{{').problems.map((problem) => JSON.stringify(problem));
    expect(new Set(told).size).toBe(told.length);
  });

  test('several problems are told at once', () => {
    expect(parseRecipe('merge_method: 1\nmodels: [{model: a, t: 1}]\nt: 2\n').problems).toHaveLength(3);
  });
});

describe('hostile texts', () => {
  const bomb = [
    'a0: &a0 [1,1,1,1,1,1,1,1,1,1]',
    ...Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(10).fill(`*a${i}`)}]`),
  ].join('\n');
  test.each([
    // so deep that the stack is used up ends the tab, not only the parser
    ['deep lists', '['.repeat(990_000), /nested too deep/],
    ['deep blocks', '- '.repeat(490_000), /nested too deep/],
    ['deep keys', '? '.repeat(490_000), /nested too deep/],
    ['deep mappings', '{a: '.repeat(240_000), /nested too deep/],
    ['a long text', `#${'x'.repeat(1_000_000)}`, /1000001 characters/],
    ['an alias bomb', `${bomb}\nmodels: *a9`, /not a mapping|more than 1000 aliases/],
    [
      'an alias bomb among the models',
      `m: &m {model: a}\nmodels: [${Array(2000).fill('*m')}]`,
      /more than 1000 aliases/,
    ],
    ['an alias of itself', 'a: &a [*a]\nmodels: *a', /more than 1000 aliases/],
    ['20 000 keys', Array.from({ length: 20_000 }, (_, i) => `k${i}: 1`).join('\n'), /has no merge_method/],
  ])('%s', (_, text, message) => {
    const { recipe, problems } = parseRecipe(text);
    expect(recipe).toBeUndefined();
    expect(problems.length).toBeLessThanOrEqual(50);
    expect(problems.map((p) => p.message).join()).toMatch(message);
  });
});
