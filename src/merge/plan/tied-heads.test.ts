import { describe, expect, it } from 'vitest';
import {
  factors,
  memoryFolder,
  openerOf,
  recipeOf,
  safetensors,
  tinyAdapter,
  tinyModel,
} from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { openSides } from '../../tools/difference/compare-models';
import { pairTensors } from '../../tools/difference/tensor-pairs';
import { methodById } from '../methods';
import type { Plan } from './plan';
import { makePlan } from './recipe-plan';

const planOf = (models: string[], ...folders: ModelFolder[]) =>
  makePlan(recipeOf(models), openerOf(...folders), methodById);
const head = (plan: Plan) => plan.tensors.find((t) => t.name === 'lm_head.weight');
const tie = (plan: Plan) => {
  const { content } = plan.extras.find((e) => e.path === 'config.json')!;
  return JSON.parse((content as { text: string }).text).tie_word_embeddings;
};
const notes = (plan: Plan) => plan.problems.map((p) => [p.severity, p.code]);

describe('R19: heads', () => {
  it('stay tied when all are', async () => {
    const plan = await planOf(['tuned'], tinyModel('base'), tinyModel('tuned'));
    expect(head(plan)).toBeUndefined();
    expect(tie(plan)).toBe(true);
    expect(notes(plan)).toEqual([]);
  });

  it('stay apart when all are', async () => {
    const plan = await planOf(
      ['tuned'],
      tinyModel('base', { head: true }),
      tinyModel('tuned', { head: true }),
    );
    expect(head(plan)!.models[0]!.view.origin).toMatchObject({ folder: 'tuned', key: 'lm_head.weight' });
    expect(tie(plan)).toBe(false);
    expect(notes(plan)).toEqual([]);
  });

  it('are untied by one model that has its own; the embedding stands in for the others', async () => {
    const plan = await planOf(
      ['tuned', 'own'],
      tinyModel('base'),
      tinyModel('tuned'),
      tinyModel('own', { head: true }),
    );
    const planned = head(plan)!;
    expect(planned.base!.origin).toMatchObject({ folder: 'base', key: 'model.embed_tokens.weight' });
    expect(planned.models.map((m) => [m.view.origin.folder, m.view.origin.key])).toEqual([
      ['tuned', 'model.embed_tokens.weight'],
      ['own', 'lm_head.weight'],
    ]);
    expect(tie(plan)).toBe(false);
    expect(notes(plan)).toEqual([['note', 'HeadUntied']]);
  });

  it('of a tied model stand in where the base has its own', async () => {
    const plan = await planOf(['tuned'], tinyModel('base', { head: true }), tinyModel('tuned'));
    expect(head(plan)!.models[0]!.view.origin.key).toBe('model.embed_tokens.weight');
    expect(tie(plan)).toBe(false);
  });

  it('that a tied model stores all the same are left out', async () => {
    const stored = { tensors: { 'lm_head.weight': ['F32', [8, 4]] as ['F32', number[]] } };
    const plan = await planOf(['tuned'], tinyModel('base', stored), tinyModel('tuned'));
    expect(head(plan)).toBeUndefined();
    expect(tie(plan)).toBe(true);
    expect(notes(plan)).toEqual([['note', 'TiedHeadLeftOut']]);
  });

  it('are untied by an adapter that saves a head, and the embedding of the base is where it starts', async () => {
    const adapter = tinyAdapter(
      'lora',
      {
        ...factors('model.layers.0.self_attn.q_proj', 4, 4),
        'base_model.model.lm_head.weight': ['F32', [8, 4]],
      },
      { modules_to_save: ['lm_head'] },
    );
    const plan = await planOf(['base+lora', 'tuned'], tinyModel('base'), adapter, tinyModel('tuned'));
    const planned = head(plan)!;
    expect(planned.base!.origin.key).toBe('model.embed_tokens.weight');
    expect(planned.models[0]!.view).toMatchObject({ onBase: false, origin: { folder: 'lora' } });
    expect(tie(plan)).toBe(false);
  });

  it('are untied by an adapter that updates the head', async () => {
    const plan = await planOf(
      ['base+lora'],
      tinyModel('base'),
      tinyAdapter('lora', factors('lm_head', 4, 8)),
    );
    expect(head(plan)!.models[0]!.view).toMatchObject({
      onBase: true,
      origin: { key: 'model.embed_tokens.weight' },
      lowRank: { layout: 'linear' },
    });
    expect(plan.tensors.find((t) => t.name === 'model.embed_tokens.weight')!.copy).toBeDefined();
  });

  it('are untied by an adapter that updates the embedding, and stay what they were', async () => {
    const module = 'base_model.model.model.embed_tokens';
    const adapter = tinyAdapter('lora', {
      [`${module}.lora_embedding_A`]: ['F32', [2, 8]],
      [`${module}.lora_embedding_B`]: ['F32', [4, 2]],
    });
    const plan = await planOf(['base+lora'], tinyModel('base'), adapter);
    expect(head(plan)!.copy).toMatchObject({ folder: 'base', key: 'model.embed_tokens.weight' });
    expect(tie(plan)).toBe(false);
    const other = await planOf(
      ['base+lora', 'own'],
      tinyModel('base'),
      adapter,
      tinyModel('own', { head: true }),
    );
    expect(head(other)!.models[0]!.view.lowRank).toBeUndefined();
  });

  it('are tied by the default of the family when the config does not say', async () => {
    const silent = (path: string, model_type: string) =>
      tinyModel(path, {
        config: { model_type, tie_word_embeddings: undefined },
        tensors: { 'lm_head.weight': ['F32', [8, 4]] },
      });
    expect(head(await planOf(['m'], silent('base', 'llama'), silent('m', 'llama')))).toBeDefined();
    expect(head(await planOf(['m'], silent('base', 'gemma'), silent('m', 'gemma')))).toBeUndefined();
  });

  it('may be absent altogether', async () => {
    const headless = (path: string) => tinyModel(path, { config: { tie_word_embeddings: false } });
    const plan = await planOf(['m'], headless('base'), headless('m'));
    expect(head(plan)).toBeUndefined();
    expect(tie(plan)).toBe(false);
    expect(notes(plan)).toEqual([]);
  });
});

describe('the embedding that encoder and decoder share', () => {
  const [shared, encoder, decoder] = ['shared', 'encoder.embed_tokens', 'decoder.embed_tokens'].map(
    (name) => `${name}.weight`,
  ) as [string, string, string];
  const pair = (path: string, ...names: string[]) =>
    memoryFolder(path, {
      'config.json': {
        ...{ model_type: 't5', is_encoder_decoder: true, d_model: 4, num_layers: 1, vocab_size: 8 },
        ...{ tie_word_embeddings: true, architectures: ['T5ForConditionalGeneration'] },
      },
      'model.safetensors': safetensors(
        Object.fromEntries(
          [...names, 'encoder.block.0.q.weight', 'decoder.block.0.q.weight'].map((name) => [
            name,
            ['F32', [8, 4]],
          ]),
        ),
      ),
      'tokenizer.json': '{"model":{"vocab":{}}}',
    });

  it.each([
    ['under all its names in the base', [shared, encoder, decoder], [shared]],
    ['under all its names in the other', [shared], [shared, encoder, decoder]],
    ['under one name each', [encoder], [decoder]],
    ['as the head alone in the other', [shared], ['lm_head.weight']],
    ['as the head alone in the base', ['lm_head.weight'], [shared]],
    ['as head and copies', [shared, encoder, 'lm_head.weight'], [shared]],
  ])('is one, stored %s', async (_, base, tuned) => {
    const folders = [pair('base', ...base), pair('m', ...tuned)];
    const plan = await planOf(['m'], ...folders);
    expect(plan.problems.filter(({ severity }) => severity !== 'note')).toEqual([]);
    const ends = plan.tensors.filter(({ name }) => /embed|shared|head/.test(name));
    expect(ends.map(({ name }) => name)).not.toContain('lm_head.weight');
    for (const { models, base: from } of ends) {
      const keys = [from!.origin, models[0]!.view.origin].map(({ key, folder }) => [folder, key]);
      expect(keys.map(([folder]) => folder)).toEqual(['base', 'm']);
      expect(base).toContain(keys[0]![1]);
      expect(tuned).toContain(keys[1]![1]);
    }
    const sides = await openSides('base', 'm', openerOf(...folders));
    const { onlyInBase, onlyInFinetuned } = pairTensors(sides.base, sides.tuned);
    expect([onlyInBase, onlyInFinetuned]).toEqual([[], []]);
  });
});

it.each([
  ['bert', 'cls.predictions.bias', 'cls.predictions.decoder.bias'],
  ['roberta', 'lm_head.bias', 'lm_head.decoder.bias'],
])('the bias of the head of %s is one, under whichever names', async (model_type, one, other) => {
  const model = (path: string, ...names: string[]) =>
    memoryFolder(path, {
      'config.json': { model_type },
      'model.safetensors': safetensors(Object.fromEntries(names.map((name) => [name, ['F32', [8]]]))),
    });
  for (const [base, tuned] of [
    [[one], [one, other]],
    [[one, other], [one]],
    [[one], [other]],
  ] as const) {
    const plan = await planOf(['m'], model('base', ...base), model('m', ...tuned));
    const said = plan.problems.map(({ message }) => message);
    expect(said.filter((message) => /lacks tensors that (?:m|base) has/.test(message))).toEqual([]);
    expect(plan.problems.map(({ code }) => code)).toContain('TensorShared');
  }
});

it.each([
  ['an embedding', 'model.embed_tokens', 'brings an embedding of 10 rows for base+a, but not the head'],
  ['a head', 'lm_head', 'brings a head of 10 rows for base+a, but not the embedding'],
])(
  'an adapter that brings %s of other rows alone is refused, on one tied and on one that is not',
  async (_, module, words) => {
    const brought: [string, ['F32', number[]]] = [`base_model.model.${module}.weight`, ['F32', [10, 4]]];
    const adapter = tinyAdapter('a', Object.fromEntries([brought]), {
      modules_to_save: [module.split('.').at(-1)],
    });
    for (const own of [false, true]) {
      const plan = await planOf(['base+a'], tinyModel('base', { head: own }), adapter);
      const said = plan.problems.find(({ code }) => code === 'AdapterInvalid');
      expect(said?.message).toContain(words);
    }
  },
);
