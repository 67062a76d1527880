/**
 * Ways of writing a recipe that mergekit 0.1.4 runs, from its documentation, its own dump and common model cards: each is
 * accepted, and plans exactly what the plain way of writing it plans.
 */
import { describe, expect, it } from 'vitest';
import { formatRecipe } from '../../formats/recipe-format';
import { parseRecipe } from '../../formats/recipe-yaml';
import { factors, openerOf, tinyAdapter, tinyModel } from '../../inputs/memory-models.test.support';
import { methodById } from '../methods';
import type { Plan } from './plan';
import { makePlan } from './recipe-plan';

const chat = (template: string) => ({ files: { 'tokenizer_config.json': { chat_template: template } } });
const folders = [
  tinyModel('base'),
  tinyModel('a', chat('of a and b')),
  tinyModel('b', chat('of a and b')),
  tinyModel('c', chat('of c alone')),
  tinyAdapter('lora', factors('model.layers.0.self_attn.q_proj', 4, 4)),
];

async function planOf(text: string): Promise<Plan> {
  const { recipe, problems } = parseRecipe(text);
  expect(problems).toEqual([]);
  const plan = await makePlan(recipe!, openerOf(...folders), methodById);
  expect(plan.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  return plan;
}

const warnings = ({ problems }: Plan) =>
  problems
    .filter(({ severity }) => severity === 'warning')
    .map(({ message, remedy }) => `${message} ${remedy}`);

/** What a plan computes: every tensor with its models and their parameters. */
function meaning({ tensors }: Plan) {
  return tensors.map(({ name, dtype, method, parameters, copy, models }) => ({
    name,
    dtype,
    method,
    parameters,
    copy: copy && `${copy.folder}/${copy.key}`,
    models: models.map(({ id, view, parameters: own }) => ({ id, key: view.origin.key, ...own })),
  }));
}

const two = (a = '{weight: 1}', b = '{weight: 0.5}') =>
  `models:\n  - {model: a, parameters: ${a}}\n  - {model: b, parameters: ${b}}\n`;
const linear = `merge_method: linear\n${two()}`;
const ties = `merge_method: ties\nbase_model: base\n${two('{weight: 1, density: 0.5}', '{weight: 0.5, density: 0.4}')}`;
const slices = (sources: string, rest = '') =>
  `slices:\n  - sources:\n${sources
    .split('|')
    .map((source) => `      - ${source}\n`)
    .join('')}${rest}`;

describe('a recipe of mergekit means the same as', () => {
  it.each<[string, string, string]>([
    [
      'numbers for booleans',
      `${linear}parameters: {normalize: 0}\n`,
      `${linear}parameters: {normalize: false}\n`,
    ],
    ['1.0 for true', `${ties}parameters: {normalize: 1.0}\n`, `${ties}parameters: {normalize: true}\n`],
    ['no for false', `${linear}parameters: {normalize: no}\n`, `${linear}parameters: {normalize: false}\n`],
    ['On for true', `${ties}parameters: {rescale: On}\n`, `${ties}parameters: {rescale: true}\n`],
    ['a number for a choice', `${ties}parameters: {rescale: 1}\n`, `${ties}parameters: {rescale: true}\n`],
    ['numbers as text', `merge_method: linear\n${two('{weight: "1"}', "{weight: '5e-1'}")}`, linear],
    [
      'a gradient of texts',
      `merge_method: linear\n${two('{weight: ["0", "1"]}')}`,
      `merge_method: linear\n${two('{weight: [0, 1]}')}`,
    ],
    [
      'a gradient of booleans',
      `merge_method: linear\n${two('{weight: [true, no]}')}`,
      `merge_method: linear\n${two('{weight: [1, 0]}')}`,
    ],
    [
      'booleans in a filter',
      `${linear}parameters: {normalize: [{filter: mlp, value: [true, false]}, {value: yes}]}\n`,
      `${linear}parameters: {normalize: [{filter: mlp, value: [1, 0]}, {value: true}]}\n`,
    ],
    ['torch.bfloat16', `${linear}dtype: torch.bfloat16\n`, `${linear}dtype: bfloat16\n`],
    [
      'models as mappings',
      'merge_method: linear\nmodels:\n  - model: {model: {path: a}}\n    parameters: {weight: 1}\n  - model: {model: {path: b, revision: null}, lora: null}\n    parameters: {weight: 0.5}\n',
      linear,
    ],
    ['a path as a mapping', `${linear.replace('model: a', 'model: {path: a}')}`, linear],
    [
      'an adapter in a mapping',
      'merge_method: task_arithmetic\nbase_model: base\nmodels: [{model: {model: base, lora: {path: lora}}, parameters: {weight: 1}}]\n',
      'merge_method: task_arithmetic\nbase_model: base\nmodels: [{model: base+lora, parameters: {weight: 1}}]\n',
    ],
    [
      'one module',
      `merge_method: linear\nmodules:\n  default:\n    ${two().replaceAll('\n', '\n    ')}\n`,
      linear,
    ],
    [
      'one module of any name, with parameters',
      `merge_method: linear\nparameters: {normalize: true}\nmodules:\n  text_decoder:\n    parameters: {normalize: false}\n    ${two().replaceAll('\n', '\n    ')}\n`,
      `${linear}parameters: {normalize: false}\n`,
    ],
    ['empty lists beside models', `${linear}slices: []\nmodules: null\n`, linear],
    ['null settings of a dump', `${linear}base_model: null\ntokenizer: null\nchat_template: null\n`, linear],
    [
      'a merge key',
      `x: &x {weight: 1}\nmerge_method: linear\nmodels:\n  - {model: a, parameters: {<<: *x}}\n  - {model: b, parameters: {<<: *x, weight: 0.5}}\n`,
      linear,
    ],
    ['a file indented as a whole', linear.replace(/^/gm, '  ').trimEnd(), linear],
    [
      'a model listed twice',
      linear.replace('models:\n', 'models:\n  - {model: b, parameters: {weight: 3}}\n'),
      `merge_method: linear\nmodels:\n  - {model: b, parameters: {weight: 0.5}}\n  - {model: a, parameters: {weight: 1}}\n`,
    ],
    [
      'a density above 1',
      `merge_method: ties\nbase_model: base\n${two('{weight: 1, density: 1.2}')}`,
      `merge_method: ties\nbase_model: base\n${two('{weight: 1, density: 1}')}`,
    ],
    [
      'keys that mergekit ignores',
      `${linear}const_tag: x\nvocab_size: 32000\noutput_path: ./out\nint8_mask: true\nalign_weights: false\n`,
      linear,
    ],
    [
      'a base that karcher adds to the models',
      'merge_method: karcher\nbase_model: base\nmodels: [{model: a}, {model: b}]\n',
      'merge_method: karcher\nbase_model: base\nmodels: [{model: a}, {model: b}, {model: base}]\n',
    ],
    [
      'a base that linear with one weight adds to the models',
      'merge_method: linear\nbase_model: base\nmodels: [{model: a}, {model: b}]\nparameters: {weight: 1}\n',
      'merge_method: linear\nbase_model: base\nmodels: [{model: a}, {model: b}, {model: base}]\nparameters: {weight: 1}\n',
    ],
    [
      'parameters of another method',
      `merge_method: sce\nbase_model: base\n${two('{density: 0.5, weight: 1}')}`,
      `merge_method: sce\nbase_model: base\n${two('{}', '{}')}`,
    ],
    [
      'ours under amalgam',
      `${ties}amalgam:\n  parameters: {semantics: peft}\n`,
      `${ties}parameters: {semantics: peft}\n`,
    ],
  ])('%s', async (_, text, plain) => {
    const plan = await planOf(text);
    expect(meaning(plan)).toEqual(meaning(await planOf(plain)));
    const written = formatRecipe(plan.recipe);
    expect(meaning(await planOf(written))).toEqual(meaning(plan));
  });

  it.each([
    [
      'karcher of many steps',
      'merge_method: karcher\nmodels: [{model: a}, {model: b}]\nparameters: {max_iter: 1200}\n',
    ],
    [
      't beyond the other model',
      'merge_method: slerp\nbase_model: base\nmodels: [{model: a}]\nparameters: {t: 1.5}\n',
    ],
    [
      'gradients with filters',
      'merge_method: slerp\nbase_model: base\nmodels: [{model: base}, {model: a}]\nparameters:\n  t:\n    - {filter: self_attn, value: [0, 0.5, 0.3, 0.7, 1]}\n    - {filter: mlp, value: [1, 0.5, 0.7, 0.3, 0]}\n    - value: 0.5\n',
    ],
    [
      'a self-merge with scale filters',
      `merge_method: passthrough\n${slices('{model: a, layer_range: [0, 2]}')}  - sources:\n      - model: a\n        layer_range: [0, 2]\n        parameters:\n          scale: [{filter: q_proj, value: 0.7}, {value: 1.0}]\n`,
    ],
    ['a chat template by name', `${linear}chat_template: chatml\n`],
    [
      'a chat template as Jinja',
      `${linear}chat_template: "{% for m in messages %}{{ m.content }}{% endfor %}"\n`,
    ],
  ])('nothing else: %s', async (_, text) => {
    const plan = await planOf(text);
    expect(plan.tensors.length).toBeGreaterThan(0);
    expect(meaning(await planOf(formatRecipe(plan.recipe)))).toEqual(meaning(plan));
  });

  it('what a slice of the base alone gives: its bytes, and with an adapter the weights with it', async () => {
    const method = (name: string, base: string) =>
      `merge_method: ${name}\nbase_model: ${base}\n${slices(`{model: ${base}, layer_range: [0, 2], parameters: {weight: 1}}`)}`;
    for (const name of ['task_arithmetic', 'ties', 'slerp']) {
      const { tensors } = await planOf(method(name, 'base'));
      expect(tensors.every(({ copy }) => copy?.folder === 'base')).toBe(true);
    }
    const { tensors } = await planOf(method('task_arithmetic', 'base+lora'));
    const q0 = 'model.layers.0.self_attn.q_proj.weight';
    for (const { name, copy, method: computed, models } of tensors) {
      expect(copy === undefined).toBe(name === q0);
      if (!copy)
        expect([computed, models.length, models[0]!.view.lowRank?.rank]).toEqual(['passthrough', 1, 2]);
    }
  });
});

describe('what is ignored is named and kept', () => {
  it('with the nearest key that there is', async () => {
    const plan = await planOf(`${linear}paramters: {normalize: false}\nvocab_size: 32000\n`);
    expect(warnings(plan)).toEqual([
      'mergekit ignores paramters, and so does Amalgam. Did you mean parameters?',
      'mergekit ignores vocab_size, and so does Amalgam. No action needed, unless it was meant to have an effect.',
    ]);
    expect(parseRecipe(formatRecipe(plan.recipe)).recipe).toEqual(plan.recipe);
  });

  it('beside a model and in a slice too', async () => {
    const text = `merge_method: passthrough\n${slices('{model: a, layer_range: [0, 2], notes: [1, {x: y}]}', '    merge_method: slerp\n    residual_weight: 0.1\n')}`;
    const plan = await planOf(text);
    expect(warnings(plan).map((warning) => warning.slice(0, 60))).toEqual([
      'mergekit ignores merge_method, residual_weight in slice 1, a',
      'mergekit ignores notes beside a in slice 1, and so does Amal',
    ]);
    expect(parseRecipe(formatRecipe(plan.recipe)).recipe).toEqual(plan.recipe);
  });

  it('a misspelled parameter too', async () => {
    const plan = await planOf(`${linear}parameters: {normalise: false}\n`);
    expect(warnings(plan).join()).toContain('Did you mean normalize?');
  });
});

describe('the chat template of the output', () => {
  const template = async (text: string) => {
    const { extras } = await planOf(text);
    const read = (path: string) => {
      const content = extras.find((extra) => extra.path === path)?.content;
      return content && 'text' in content ? content.text : content;
    };
    return { file: read('chat_template.jinja'), settings: read('tokenizer_config.json') };
  };
  const three =
    'merge_method: linear\nmodels: [{model: c}, {model: a}, {model: b}]\nparameters: {weight: 1}\n';

  it('is the tokenizer’s own where the recipe says nothing', async () => {
    expect(await template(three)).toEqual({
      file: undefined,
      settings: { folder: 'c', file: 'tokenizer_config.json' },
    });
  });

  it('is the one most models have for auto', async () => {
    const { file, settings } = await template(`${three}chat_template: auto\n`);
    expect(file).toBe('of a and b');
    expect(JSON.parse(settings as string)).toEqual({ chat_template: 'of a and b' });
  });

  it('is written where the tokenizer’s model has no settings', async () => {
    const { file, settings } = await template(`${ties}chat_template: chatml\n`);
    expect(file).toContain('<|im_start|>');
    expect(settings).toBeUndefined();
  });

  it.each([
    ['with a base', ties],
    ['without one', 'merge_method: linear\nmodels: [{model: base}, {model: a}]\nparameters: {weight: 1}\n'],
  ])('is hinted at where models have one and the tokenizer’s model has none: %s', async (_, text) => {
    const { problems } = await planOf(text);
    expect(problems).toContainEqual(expect.objectContaining({ severity: 'note', code: 'ChatTemplateLeft' }));
  });
});
