/** Words of a plan on ids of tokens that have no row, or that nobody reads as they are written. */
import { describe, expect, test } from 'vitest';
import { errorReport } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import { openerOf, type TinyOptions, tinyModel } from '../../inputs/memory-models.test.support';
import type { ModelOrigin } from '../../sources/model-folder';
import { methodById } from '../methods';
import { makePlan } from '../plan/recipe-plan';
import { FLAGS } from './vocabulary.test.support';

const whole = (path: string, options: TinyOptions = {}) =>
  tinyModel(path, { whole: true, hidden: 8, vocabulary: 8, ...options });
const copyRecipe: Recipe = {
  mergeMethod: 'passthrough',
  models: [{ model: 'm', parameters: {} }],
  parameters: {},
  amalgam: {},
};

test('ids of added tokens that tokenizer.json says and no reader gives them are said', async () => {
  const of = async (vocab: object) => {
    const added_tokens = [{ ...FLAGS, id: 3, content: '[PAD]' }];
    const json = { model: { type: 'BPE', vocab, merges: [] }, added_tokens };
    const plan = await makePlan(
      copyRecipe,
      openerOf(whole('m', { files: { 'tokenizer.json': json } })),
      methodById,
    );
    return plan.problems.map(({ code, message }) => `${code} ${message}`);
  };
  expect(await of({ a: 0, b: 1, c: 2 })).toEqual([]);
  expect(await of({ a: 0, b: 1, z: 7 })).toEqual([]);
  expect(await of({ a: 0, z: 7 })).toEqual([
    expect.stringMatching(/^TokensRenumbered .*\[PAD\] 2 and not 3/),
  ]);
});

const wordsOn = async (files: Record<string, string | object>) => {
  const plan = await makePlan(copyRecipe, openerOf(whole('m', { files })), methodById);
  return plan.problems.map(({ severity, code, message }) => `${severity} ${code} ${message}`);
};
const vocab = { a: 0, b: 1, c: 2, '</s>': 3 };
const tokenizer = { model: { type: 'BPE', vocab, merges: [] } };

test('tokens that share an id are said', async () => {
  const json = { model: { type: 'BPE', vocab: { ...vocab, d: 1 }, merges: [] } };
  expect(await wordsOn({ 'tokenizer.json': json })).toEqual([
    expect.stringMatching(/^warning TokensShareId .*b and d \(1\)/),
  ]);
});

test.each(['tokenizer_config.json', 'special_tokens_map.json'])(
  'an end token in %s that the tokenizer lacks is said',
  async (file) => {
    const words = (settings: object) => wordsOn({ 'tokenizer.json': tokenizer, [file]: settings });
    expect(await words({ eos_token: '</s>', pad_token: null })).toEqual([]);
    expect(await words({ eos_token: { content: '</s>' } })).toEqual([]);
    expect(
      await words({ eos_token: '<|end|>', added_tokens_decoder: { 4: { content: '<|end|>' } } }),
    ).toEqual([]);
    expect(await words({ eos_token: '<|end|>' })).toEqual([
      expect.stringMatching(
        new RegExp(`^warning SpecialTokenUnknown ${file} of m .*eos_token “<\\|end\\|>”`),
      ),
    ]);
  },
);

test.each(['chat_template.jinja', 'tokenizer_config.json'])(
  'a chat template in %s that is none is said, and so is one of the recipe',
  async (file) => {
    const files = (template: string) => ({
      'tokenizer.json': tokenizer,
      [file]: file.endsWith('.json') ? { chat_template: template } : template,
    });
    expect(await wordsOn(files('{% for m in messages %}{{ m.content }}{% endfor %}'))).toEqual([]);
    const broken = '{% for m in messages %}{{ m.content }}';
    expect(await wordsOn(files(broken))).toEqual([
      expect.stringMatching(/^warning ChatTemplateInvalid The chat template of m /),
    ]);
    const plan = await makePlan(
      { ...copyRecipe, chatTemplate: broken },
      openerOf(whole('m', { files: files('{{ messages }}') })),
      methodById,
    );
    expect(plan.problems.map(({ code }) => code)).toEqual(['ChatTemplateInvalid']);
  },
);

describe('ids that a config names', () => {
  const rows = 8;
  const said = async (files: { config?: object; generation?: object }, origin?: ModelOrigin) => {
    const made = whole('m', {
      config: { ...files.config },
      files: files.generation ? { 'generation_config.json': files.generation } : {},
    });
    const plan = await makePlan(copyRecipe, openerOf({ ...made, ...(origin && { origin }) }), methodById);
    return plan.problems
      .filter(({ code }) => code === 'TokenIdsBeyondRows')
      .map(({ severity, message }) => `${severity}: ${message}`);
  };
  const keys = ['bos_token_id', 'eos_token_id', 'pad_token_id', 'decoder_start_token_id', 'suppress_tokens'];
  const hub: ModelOrigin = { kind: 'hub', repo: 'a/m', revision: 'main', commit: '0'.repeat(40) };

  test.each(keys)('%s has a row, or it is said, in either file', async (key) => {
    for (const file of ['config', 'generation'] as const) {
      expect(await said({ [file]: { [key]: rows - 1 } })).toEqual([]);
      expect(await said({ [file]: { [key]: null } })).toEqual([]);
      expect(await said({ [file]: { [key]: -1 } })).toEqual([]);
      const name = file === 'config' ? 'config.json' : 'generation_config.json';
      for (const beyond of [rows, [0, rows]]) {
        const words = expect.stringMatching(new RegExp(`^warning: ${name} .* 8 rows .*: ${key} ${rows}[,.]`));
        expect(await said({ [file]: { [key]: beyond } })).toEqual([words]);
        expect(await said({ [file]: { [key]: beyond } }, hub)).toEqual([words]);
      }
    }
  });

  test('are looked for in the config of the text tower, and those of pictures are none', async () => {
    expect(await said({ config: { text_config: { eos_token_id: rows } } })).toHaveLength(1);
    expect(await said({ config: { image_token_id: rows } })).toEqual([]);
  });

  test('a config of a hub that is none is an error of the plan', async () => {
    const folder = { ...whole('m', { files: { 'generation_config.json': '<html>' } }), origin: hub };
    expect((await makePlan(copyRecipe, openerOf(folder), methodById)).problems).toContainEqual(
      expect.objectContaining({ severity: 'error', message: expect.stringContaining('generation_config') }),
    );
  });
});

describe('what transformers reads as an object is one, or nothing is written', () => {
  const FILES = [
    'tokenizer_config.json',
    'special_tokens_map.json',
    'added_tokens.json',
    'generation_config.json',
    'preprocessor_config.json',
    'chat_template.json',
    'vocab.json',
    'tokenizer.json',
  ];
  const said = async (recipe: Recipe, ...folders: ReturnType<typeof whole>[]) => {
    try {
      const { problems } = await makePlan(recipe, openerOf(...folders), methodById);
      return problems.flatMap(({ severity, message }) => (severity === 'error' ? message : [])).join('; ');
    } catch (thrown) {
      return errorReport(thrown).message;
    }
  };
  const vocab = { a: 0, b: 1, ab: 2 };

  test.each([
    ['tokenizer_config.json', { eos_token: 3 }, /eos_token something that is no text/],
    ['special_tokens_map.json', { mask_token: { content: 5 } }, /mask_token something that is no text/],
    ['tokenizer_config.json', { chat_template: 3 }, /neither a text nor texts with names/],
    ['tokenizer_config.json', { chat_template: ['{{ messages }}'] }, /neither a text nor texts with names/],
    ['tokenizer_config.json', { chat_template: { default: 3 } }, /neither a text nor texts with names/],
    ['generation_config.json', { eos_token_id: 'x' }, /eos_token_id in generation_config\.json .* neither/],
    ['generation_config.json', { suppress_tokens: [1, 'x'] }, /suppress_tokens .* neither/],
    ['generation_config.json', { eos_token_id: [1, 2], pad_token_id: -1, bos_token_id: null }, /^$/],
    ['generation_config.json', { temperature: 'hot' }, /its temperature is not a number/],
    ['generation_config.json', { do_sample: 'yes' }, /its do_sample is not true or false/],
    ['generation_config.json', { temperature: 0.7, top_p: null, do_sample: true }, /^$/],
    ['added_tokens.json', { '<x>': 'three' }, /gives a token something that is no id/],
    ['vocab.json', { a: -1 }, /gives a token something that is no id/],
    ['tokenizer_config.json', { eos_token: null, bos_token: { content: 'a' } }, /^$/],
    ['tokenizer_config.json', { chat_template: [{ name: 'default', template: '{{ messages }}' }] }, /^$/],
    ['tokenizer_config.json', { chat_template: { default: '{{ messages }}' } }, /^$/],
  ])('%s with %j', async (file, settings, words) => {
    expect(
      await said(copyRecipe, whole('m', { files: { 'tokenizer.json': json, [file]: settings } })),
    ).toMatch(words);
  });
  const json = { model: { type: 'BPE', vocab, merges: ['a b'] } };

  test.each(FILES.flatMap((file) => ['[]', 'null', '"text"', '3'].map((content) => [file, content])))(
    '%s that is %s',
    async (file, content) => {
      const files = { 'tokenizer.json': json, [file!]: content! };
      const m = whole('m', { files });
      const words = /is not an object|names no tokens/;
      expect(await said(copyRecipe, m)).toMatch(words);
      // a union writes them anew, and leaves this one out
      if (file === 'vocab.json') return;
      const other = { model: { ...json.model, vocab: { ...vocab, c: 3 } } };
      const n = whole('n', { files: { 'tokenizer.json': other } });
      const models = ['m', 'n'].map((model) => ({ model, parameters: { weight: 1 } }));
      const union: Recipe = { ...copyRecipe, mergeMethod: 'linear', models, tokenizerSource: 'union' };
      expect(await said(union, m, n)).toMatch(words);
    },
  );
});
