import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { goldenFolder } from '../../e2e/goldens';
import { parseRecipe } from '../formats/recipe-yaml';
import { exportWarnings } from './method-export';
import { methodById } from './methods';

const GOLDEN = goldenFolder('mergekit');
const warnings = (text: string) => {
  const { recipe, problems } = parseRecipe(text);
  expect(problems).toEqual([]);
  return exportWarnings(recipe!, methodById).map((w) => `${w.setting} → ${w.consequence}`);
};
const ties = (parameters: string, rest = '') => `merge_method: ties
base_model: base
dtype: float32
models:
  - {model: a, parameters: {weight: 1}}
parameters: ${parameters}
${rest}`;

describe('exportWarnings', () => {
  test.each(readdirSync(GOLDEN).filter((name) => name.endsWith('.yml')))(
    'a recipe of mergekit means the same there: %s',
    (name) => {
      const found = warnings(readFileSync(`${GOLDEN}/${name}`, 'utf8'));
      // the masks of methods that draw are mergekit's own
      expect(found.filter((w) => !w.startsWith('seed 0 → mergekit draws other masks'))).toEqual([]);
      expect(found.length).toBe(/^(dare|della)/.test(name) ? 1 : 0);
    },
  );

  test.each<[string, string, RegExp[]]>([
    [
      'named semantics',
      ties('{semantics: paper}'),
      [/^semantics: paper of the recipe → .*goes on without it/],
    ],
    [
      'a union of tokenizers',
      ties('{}', 'tokenizer_source: union\n'),
      [/^tokenizer_source: union → .*cuts the rows/, /^tokenizer_source: union → .*in no fixed order/],
    ],
    ['its default is no loss', ties('{semantics: mergekit}'), []],
    [
      'of one model or filter',
      ties('{normalize: true, majority_sign_method: [{filter: mlp, value: frequency}, {value: total}]}'),
      [/^majority_sign_method: frequency of the recipe/],
    ],
    ['rescale as mergekit spells it', ties('{rescale: true}'), []],
    ['rescale by the same name', ties('{rescale: on}'), []],
    [
      'rescale as mergekit cannot',
      ties('{rescale: 1/density}'),
      [/^rescale: 1\/density of the recipe → .*ignores: there it is none/],
    ],
    ['a word that is the default', ties('{rescale: none}'), []],
    [
      'a word in a slice',
      'merge_method: ties\nbase_model: base\ndtype: float32\nslices:\n  - {parameters: {semantics: peft}, sources: [{model: a, layer_range: [0, 1]}]}\n',
      [/^semantics: peft of slice 1 → .*refuses the recipe/],
    ],
    [
      'a glob',
      ties('{lambda: [{filter: "*.q_proj.weight", value: 1}, {filter: mlp, value: 2}, {value: 1}]}'),
      [/^filter: \*\.q_proj\.weight → .*matches nothing/],
    ],
    [
      'include, exclude',
      ties('{}', 'amalgam: {include: [mlp], exclude: [norm]}'),
      [/^amalgam\.include → .*other tensors too/, /^amalgam\.exclude → .*these tensors too/],
    ],
    [
      'gradients at the nearest end',
      ties('{lambda: [0, 1]}', 'amalgam: {gradient_ends: nearest}'),
      [/^amalgam\.gradient_ends → .*first value/],
    ],
    ['the same without a gradient', ties('{lambda: 1}', 'amalgam: {gradient_ends: nearest}'), []],
    ['gradients as mergekit has them', ties('{lambda: [0, 1]}', 'amalgam: {gradient_ends: mergekit}'), []],
    [
      'shards',
      ties('{}', 'amalgam: {shard_bytes: 1000000, non_finite: stop}'),
      [/^amalgam\.shard_bytes → .*--out-shard-size/],
    ],
    ['a seed where nothing is drawn', ties('{}', 'amalgam: {seed: 7}'), []],
    [
      'a seed where something is',
      ties('{}', 'amalgam: {seed: 7}').replace('ties', 'dare_ties'),
      [/^seed 7 → .*--random-seed/],
    ],
    ['no dtype', ties('{}').replace('dtype: float32\n', ''), [/^no dtype → .*coarser/]],
    [
      'a method of our own',
      ties('{}').replace('ties', 'gram').replace('{weight: 1}', '{}'),
      [/^gram → mergekit has no such method/],
    ],
    [
      'stages',
      `name: first\n${ties('{semantics: peft}')}---\n${ties('{}').replace('model: a', 'model: first')}`,
      [/^several documents → Only mergekit-multi/, /^semantics: peft of the recipe \(first\)/],
    ],
  ])('%s', (_, text, expected) => {
    const found = warnings(text);
    expect(found).toHaveLength(expected.length);
    for (const [i, pattern] of expected.entries()) expect(found[i]).toMatch(pattern);
  });
});
