/** Merging models whose vocabularies differ: rows follow their tokens, whatever their ids. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Recipe } from '../../formats/recipe';
import type { ModelFolder } from '../../sources/model-folder';
import {
  cellOf,
  FLAGS,
  HIDDEN,
  idsOf,
  mergeIn,
  planIn,
  type TokenFolder,
  tokenFolder,
} from './vocabulary.test.support';

const EMBEDDING = 'model.embed_tokens.weight';
const HEAD = 'lm_head.weight';

const linear = (weights: Record<string, number>, more: Partial<Recipe> = {}): Recipe => ({
  mergeMethod: 'linear',
  models: Object.entries(weights).map(([model, weight]) => ({ model, parameters: { weight } })),
  parameters: {},
  amalgam: {},
  ...more,
});
const differences = (models: string[], more: Partial<Recipe> = {}): Recipe => ({
  ...linear(Object.fromEntries(models.map((m) => [m, 1])), more),
  mergeMethod: 'task_arithmetic',
  baseModel: 'base',
});

const base: TokenFolder = { tokens: ['a', 'b', 'c', 'd'], added: { '<s>': 4 } };
/** b and a swapped, no d, one more token, one row without a token. */
const tuned: TokenFolder = { tokens: ['b', 'a', 'c'], added: { '<s>': 3, '<chat>': 4 }, rows: 6 };
const folders = (specs: Record<string, TokenFolder>): ModelFolder[] =>
  Object.entries(specs).map(([path, spec]) => tokenFolder(path, spec));
const codes = (plan: { problems: { severity: string; code: string }[] }, severity: string) =>
  plan.problems.filter((p) => p.severity === severity).map(({ code }) => code);

/** A model's row of a token: its own, else the one filled in from the others (f64). */
function rowOf(
  specs: Record<string, TokenFolder>,
  model: string,
  tensor: string,
  token: string,
  first?: string,
): number[] {
  const has = (path: string) => {
    const id = idsOf(specs[path]!).get(token);
    return id !== undefined && id < (specs[path]!.rows ?? Infinity);
  };
  const of = (path: string) => Array.from({ length: HIDDEN }, (_, c) => cellOf(path, tensor, token, c));
  if (has(model)) return of(model);
  const owners = Object.keys(specs).filter(has);
  if (owners.length === 0) return new Array(HIDDEN).fill(0);
  if (owners.length > 1 && first !== undefined && has(first)) return of(first);
  const rows = owners.map(of);
  return rows[0]!.map((_, c) => rows.reduce((sum, row) => sum + row[c]!, 0) / rows.length);
}

const row = (values: Float32Array, id: number) => [...values.slice(id * HIDDEN, (id + 1) * HIDDEN)];

describe('what the plan asks', () => {
  it('says how vocabularies of other sizes differ, and stops until one is chosen', async () => {
    const plan = await planIn(differences(['tuned']), ...folders({ base, tuned }));
    const [problem, ...more] = plan.problems.filter(({ severity }) => severity === 'error');
    expect(more).toEqual([]);
    expect(problem).toMatchObject({ code: 'VocabularyMismatch' });
    expect(problem!.message).toBe(
      'tuned has a vocabulary of 6, but base has 5. One token is in base only: “d”. One token is in tuned only: “<chat>”. 3 tokens have a different id in tuned: “a”, “b”, “<s>”.',
    );
    expect(problem!.remedy).toMatch(/tokenizer_source: base.*union.*never cuts/);
    expect(plan.vocabulary).toMatchObject({
      models: [
        { ref: 'base', rows: 5, tokens: 5 },
        { ref: 'tuned', rows: 6, tokens: 5 },
      ],
      output: { from: 'base', tokens: null, rows: 5 },
    });
    expect(plan.vocabulary!.words[0]).toBe('tuned has 6 rows in its embedding, base has 5.');
  });

  it('also where only the ids differ, and warns where tokens were renamed in place', async () => {
    const swapped = { ...base, tokens: ['b', 'a', 'c', 'd'] };
    const moved = await planIn(differences(['tuned']), ...folders({ base, tuned: swapped }));
    expect(codes(moved, 'error')).toEqual(['VocabularyMismatch']);
    const renamed = { ...base, added: { '<bos>': 4 } };
    const plan = await planIn(differences(['tuned']), ...folders({ base, tuned: renamed }));
    expect(codes(plan, 'error')).toEqual([]);
    expect(codes(plan, 'warning')).toEqual(['VocabulariesDiffer']);
    expect(plan.problems[0]!.message).toMatch(/“<s>”.*“<bos>”.*merged by index/);
  });

  it('leaves models alone whose tokens are the same, whatever else their files say', async () => {
    const other = { ...base, tokenizer: { ...JSON.parse(JSON.stringify(tokenizer())), truncation: null } };
    for (const tokenizerSource of [undefined, 'base', 'tuned', 'union']) {
      const recipe = differences(['tuned'], tokenizerSource === undefined ? {} : { tokenizerSource });
      const plan = await planIn(recipe, ...folders({ base, tuned: other }));
      expect(codes(plan, 'error')).toEqual([]);
      expect(plan.tensors[0]!.models[0]!.view.origin.rows).toBeUndefined();
    }
  });

  it('names the model whose tokens are not known', async () => {
    const silent = { ...tuned, tokenizer: { model: {} } };
    const plan = await planIn(
      differences(['tuned'], { tokenizerSource: 'base' }),
      ...folders({ base, tuned: silent }),
    );
    expect(codes(plan, 'error')).toEqual(['VocabularyUnknown']);
    expect(plan.problems[0]!.message).toMatch(/tuned\/tokenizer\.json names no tokens/);
  });
});

function tokenizer(): object {
  const file = tokenFolder('x', base).files.find(({ path }) => path === 'tokenizer.json')!;
  return {
    file: file.byteLength,
    model: { type: 'BPE', vocab: { a: 0, b: 1, c: 2, d: 3 }, merges: [] },
    added_tokens: [{ ...FLAGS, id: 4, content: '<s>' }],
  };
}

describe('rows follow their tokens', () => {
  const specs = { base, tuned };
  const union = ['a', 'b', 'c', 'd', '<s>', '<chat>'];
  const own = ['b', 'a', 'c', '<s>', '<chat>'];
  it.each([
    ['union', union],
    ['base', union.slice(0, 5)],
    ['tuned', own],
  ])('tokenizer_source: %s', async (tokenizerSource, tokens) => {
    const { plan, values, texts } = await mergeIn(
      linear({ base: 0.25, tuned: 0.75 }, { tokenizerSource, baseModel: 'base' }),
      folders(specs),
      7,
    );
    const merged = values.get(EMBEDDING)!;
    expect(merged.length).toBe(tokens.length * HIDDEN);
    for (const [id, token] of tokens.entries()) {
      const [x, y] = ['base', 'tuned'].map((m) => rowOf(specs, m, EMBEDDING, token));
      const expected = x!.map((v, c) => 0.25 * v + 0.75 * y![c]!);
      for (const [c, v] of row(merged, id).entries()) expect(v).toBeCloseTo(expected[c]!, 6);
    }
    expect(JSON.parse(texts.get('config.json')!).vocab_size).toBe(tokens.length);
    expect(plan.vocabulary!.output).toMatchObject({ tokens: tokens.length, rows: tokens.length });
    expect(plan.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  it('takes the base’s row where several models have a token, else their mean', async () => {
    const three = {
      base,
      tuned: { ...tuned, added: { '<s>': 3, '<x>': 4 } },
      third: { tokens: ['a', 'b', 'c', 'd'], added: { '<x>': 4, '<y>': 5 } },
    };
    const deltas = await mergeIn(
      differences(['tuned', 'third'], { tokenizerSource: 'union' }),
      folders(three),
    );
    const tokens = ['a', 'b', 'c', 'd', '<s>', '<x>', '<y>'];
    for (const [id, token] of tokens.entries()) {
      const [b, x, y] = ['base', 'tuned', 'third'].map((m) => rowOf(three, m, EMBEDDING, token, 'base'));
      for (const [c, v] of row(deltas.values.get(EMBEDDING)!, id).entries())
        expect(v).toBeCloseTo(b![c]! + (x![c]! - b![c]!) + (y![c]! - b![c]!), 5);
    }
    expect(deltas.plan.problems.find(({ code }) => code === 'VocabularyOutput')!.message).toMatch(
      /7 tokens in 7 rows: those of base and 2 more.*1 token that several models have/,
    );
  });

  it('brings the heads along, also where one model’s is its embedding', async () => {
    const heads = { base: { ...base, head: true }, tuned };
    const { values, texts } = await mergeIn(
      linear({ base: 1, tuned: 1 }, { tokenizerSource: 'union' }),
      folders(heads),
    );
    expect(JSON.parse(texts.get('config.json')!).tie_word_embeddings).toBe(false);
    const chat = cellOf('tuned', EMBEDDING, '<chat>', 0);
    expect(row(values.get(HEAD)!, 5)[0]).toBeCloseTo(chat, 6);
    const d = cellOf('base', HEAD, 'd', 0);
    expect(row(values.get(HEAD)!, 3)[0]).toBeCloseTo(d, 6);
  });

  it('copies rows that are only moved, and says which tokens nobody has', async () => {
    const one = linear(
      { tuned: 1 },
      { mergeMethod: 'passthrough', baseModel: 'base', tokenizerSource: 'base' },
    );
    const { plan, values } = await mergeIn(
      { ...one, models: [{ model: 'tuned', parameters: {} }] },
      folders(specs),
    );
    const tensor = plan.tensors.find(({ name }) => name === EMBEDDING)!;
    expect(tensor.copy).toMatchObject({ folder: 'tuned', dtype: 'F32', shape: [5, HIDDEN] });
    for (const [id, token] of ['a', 'b', 'c'].entries()) {
      expect(row(values.get(EMBEDDING)!, id)).toEqual(rowOf(specs, 'tuned', EMBEDDING, token));
    }
    expect(row(values.get(EMBEDDING)!, 3)).toEqual([0, 0, 0]);
    expect(plan.problems.find(({ code }) => code === 'TokensWithoutEmbedding')!.message).toBe(
      '1 token is in none of the models that are merged, so its row is zero: d.',
    );
  });

  it('brings the bias of a head along', async () => {
    const heads = {
      base: { ...base, head: 'biased' as const },
      tuned: { ...tuned, head: 'biased' as const },
    };
    const { values } = await mergeIn(
      linear({ base: 1, tuned: 1 }, { tokenizerSource: 'union' }),
      folders(heads),
    );
    const bias = values.get('lm_head.bias')!;
    expect(bias.length).toBe(6);
    const of = (model: string, token: string) => cellOf(model, 'lm_head.bias', token, 0);
    expect(bias[1]).toBeCloseTo((of('base', 'b') + of('tuned', 'b')) / 2, 6);
    expect(bias[5]).toBeCloseTo(of('tuned', '<chat>'), 6);
  });

  it('brings per-layer embeddings and the biases of encoders along, also where there are fewer rows', async () => {
    const layered = 'model.language_model.embed_tokens_per_layer.weight';
    const bias = 'cls.predictions.bias';
    const with_ = (spec: TokenFolder, rows?: number): TokenFolder => ({
      ...spec,
      perToken: { [layered]: rows, [bias]: undefined },
      config: { vocab_size_per_layer_input: rows ?? spec.rows ?? 5 },
    });
    const { values, texts } = await mergeIn(
      linear({ base: 1, tuned: 1 }, { tokenizerSource: 'union' }),
      folders({ base: with_(base, 4), tuned: with_(tuned) }),
    );
    expect(values.get(layered)!.length).toBe(6 * HIDDEN);
    expect(JSON.parse(texts.get('config.json')!).vocab_size_per_layer_input).toBe(6);
    const mean = (tensor: string, id: number, ofBase: string, ofTuned: string) =>
      expect(values.get(tensor)![id]).toBeCloseTo(
        (cellOf('base', tensor, ofBase, 0) + cellOf('tuned', tensor, ofTuned, 0)) / 2,
        6,
      );
    mean(layered, HIDDEN, 'b', 'b');
    // <s> is beyond the base's four rows: row 0 stands for it
    mean(layered, 4 * HIDDEN, 'a', '<s>');
    mean(bias, 1, 'b', 'b');
    mean(bias, 4, '<s>', '<s>');
  });

  it('any permutation of the ids of a model changes nothing', async () => {
    const tokens = ['a', 'b', 'c', 'd', 'e', 'f'];
    const one = { tokens };
    const reference = await mergeIn(linear({ base: 0.5, tuned: 0.5 }), folders({ base: one, tuned: one }));
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(tokens, { minLength: 6 }),
        fc.constantFrom('base', 'union'),
        async (order, source) => {
          const { values } = await mergeIn(
            linear({ base: 0.5, tuned: 0.5 }, { tokenizerSource: source }),
            folders({ base: one, tuned: { tokens: order } }),
            5,
          );
          expect(values.get(EMBEDDING)).toEqual(reference.values.get(EMBEDDING));
        },
      ),
      { numRuns: 20 },
    );
  });

  it('does not depend on tiles', async () => {
    const recipe = {
      ...differences(['tuned'], { tokenizerSource: 'union', tokenizer: { padToMultipleOf: 4 } }),
    };
    const whole = await mergeIn(recipe, folders(specs));
    const rows = Array.from({ length: 4000 }, (_, i) => `t${i}`);
    const large = { base: { tokens: rows }, tuned: { tokens: [...rows].reverse(), added: { '<x>': 4000 } } };
    const one = await mergeIn(recipe, folders(large));
    const many = await mergeIn(recipe, folders(large), 4096);
    expect(many.values).toEqual(one.values);
    expect(whole.values.get(EMBEDDING)!.length).toBe(8 * HIDDEN);
  });
});

describe('padding and chosen tokens', () => {
  it('fills up with the mean of the model’s own rows, and sets the size', async () => {
    const { values, texts, plan } = await mergeIn(
      linear(
        { base: 1 },
        {
          tokenizerSource: 'base',
          tokenizer: { padToMultipleOf: 8 },
          mergeMethod: 'passthrough',
          parameters: {},
        },
      ),
      folders({ base }),
    );
    const merged = values.get(EMBEDDING)!;
    expect(merged.length).toBe(8 * HIDDEN);
    const mean = Array.from(
      { length: HIDDEN },
      (_, c) => ['a', 'b', 'c', 'd', '<s>'].reduce((sum, t) => sum + cellOf('base', EMBEDDING, t, c), 0) / 5,
    );
    for (const id of [5, 6, 7])
      for (const [c, v] of row(merged, id).entries()) expect(v).toBeCloseTo(mean[c]!, 6);
    expect(row(merged, 1)).toEqual([0, 1, 2].map((c) => cellOf('base', EMBEDDING, 'b', c)));
    expect(JSON.parse(texts.get('config.json')!).vocab_size).toBe(8);
    expect(plan.extras.find(({ path }) => path === 'tokenizer.json')!.content).toEqual({
      folder: 'base',
      file: 'tokenizer.json',
    });
  });

  it('takes embeddings from where the recipe says, for those that lack the token or, forced, for all', async () => {
    const specs = { base, tuned };
    const tokens: NonNullable<Recipe['tokenizer']>['tokens'] = [
      { token: '<chat>', source: { kind: 'model_token', model: 'base', token: '<s>' } },
      { token: 'a', source: { kind: 'model_token', model: 'tuned', tokenId: 5 }, force: true },
      { token: '<new>', source: { kind: 'zero' } },
      { token: 'd', source: { kind: 'model', model: 'base' }, force: true },
    ];
    const { values, texts } = await mergeIn(
      linear({ base: 0.5, tuned: 0.5 }, { tokenizerSource: 'union', tokenizer: { tokens } }),
      folders(specs),
    );
    const merged = values.get(EMBEDDING)!;
    const mean = (x: number[], y: number[]) => x.map((v, c) => (v + y[c]!) / 2);
    const of = (m: string, t: string) => [0, 1, 2].map((c) => cellOf(m, EMBEDDING, t, c));
    expect(row(merged, 5)).toEqual(mean(of('base', '<s>'), of('tuned', '<chat>')));
    expect(row(merged, 0)).toEqual(of('tuned', '#5'));
    expect(row(merged, 6)).toEqual([0, 0, 0]);
    expect(row(merged, 3)).toEqual(of('base', 'd'));
    const written = JSON.parse(texts.get('tokenizer.json')!);
    expect(written.added_tokens.map((t: { content: string; id: number }) => [t.content, t.id])).toEqual([
      ['<s>', 4],
      ['<chat>', 5],
      ['<new>', 6],
    ]);
  });

  it.each<[string, NonNullable<NonNullable<Recipe['tokenizer']>['tokens']>[number]['source'], RegExp]>([
    ['a model that is not merged', { kind: 'model', model: 'z' }, /come from z, which is not among/],
    ['a token the model lacks', { kind: 'model', model: 'base' }, /base has no embedding of “<chat>”/],
    [
      'a row the model lacks',
      { kind: 'model_token', model: 'base', tokenId: 5 },
      /no row 5: its embedding has 5/,
    ],
  ])('refuses %s', async (_, source, message) => {
    const recipe = linear(
      { base: 1, tuned: 1 },
      { tokenizerSource: 'union', tokenizer: { tokens: [{ token: '<chat>', source }] } },
    );
    const plan = await planIn(recipe, ...folders({ base, tuned }));
    expect(codes(plan, 'error')).toEqual(['TokenSourceInvalid']);
    expect(plan.problems[0]!.message).toMatch(message);
  });
});
