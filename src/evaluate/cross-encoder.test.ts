/** Cross-encoders: pairs as Rust encodes them, scores by a forward pass of the test's own in f64, heads in merges. */
import { Tokenizer as Rust } from 'tokenizers';
import { describe, expect, it, vi } from 'vitest';
import { mergeInNode } from '../../e2e/merge-in-node';
import { erf } from '../backend/special';
import { createTokenizer } from '../foreign/tokenizer';
import { parseModelConfig } from '../formats/model-config';
import { copyOf } from '../formats/recipe';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import { spearman } from '../tasks/embedding-metrics';
import { openCrossEncoder } from './cross-encoder';
import {
  KINDS,
  type Numbers,
  PROCESSORS,
  scoreOf,
  TEMPLATE,
  tinyEncoder,
  tokenizerOf,
} from './cross-encoder.test.fixture';
import { runTasks } from './task-job';

vi.stubGlobal('navigator', { hardwareConcurrency: 1 });

const PAIRS = [
  ['What keeps egg whites stiff?', 'A clean, dry bowl.'],
  ['', 'One side is empty'],
  ['long '.repeat(30), 'long, too '.repeat(20)],
  ['both are as long '.repeat(12), 'both are as long '.repeat(12)],
  ['short', 'the other one is long '.repeat(25)],
  ['the first one is long '.repeat(25), 'short'],
] as const;

const configOf = (fields: object) => parseModelConfig(JSON.stringify(fields), 'config.json');

describe('pairs', () => {
  const { numbers } = tinyEncoder('bert', 1);
  const ofBert = {
    ...{ modelType: 'bert', hidden: 12 },
    embedding: { positions: { types: { tensor: '', rows: 2 } } },
  } as unknown as Parameters<typeof openCrossEncoder>[1];
  const open = (post_processor: unknown, most: number) => {
    const tokenizer = tokenizerOf(post_processor);
    const made = createTokenizer({ tokenizer, hasSentencePiece: false }, 'm');
    const encodeAll = async (texts: readonly string[]) => texts.map((text) => made.encode(text));
    const tensor = async (name: string) => numbers.get(name);
    return openCrossEncoder(
      configOf(KINDS.bert.config),
      ofBert,
      tensor,
      { pair: made.pair, encodeAll },
      most,
    );
  };

  it.each(Object.entries(PROCESSORS))(
    '%s: ids and kinds of text are those of Rust, cut or not',
    async (_, own) => {
      for (const most of [512, 33, 32, 12]) {
        const rust = Rust.fromString(tokenizerOf(own));
        rust.setTruncation(most);
        const ours = await (await open(own, most)).encode(PAIRS);
        for (const [i, [one, other]] of PAIRS.entries()) {
          const encoding = await rust.encode(one.trim(), other.trim());
          expect(ours[i], `${most} ${i}`).toEqual({ ids: encoding.getIds(), types: encoding.getTypeIds() });
        }
      }
    },
  );

  it('of a tokenizer that does not say how are refused', async () => {
    await expect(open({ ...TEMPLATE, pair: TEMPLATE.single }, 32)).rejects.toThrow(/joins two texts/);
  });
});

describe('heads', () => {
  const ofModern = {
    ...{ modelType: 'modernbert', hidden: 2 },
    embedding: {},
  } as unknown as Parameters<typeof openCrossEncoder>[1];
  const tokenizer = { pair: [], encodeAll: async () => [] };
  const numbers = (labels: number): Numbers =>
    new Map([
      ['head.dense.weight', { values: Float32Array.of(1, -2, 0.5, 3), shape: [2, 2] }],
      ['head.norm.weight', { values: Float32Array.of(0.5, 2), shape: [2] }],
      [
        'classifier.weight',
        { values: Float32Array.from({ length: 2 * labels }, (_, i) => i + 1), shape: [labels, 2] },
      ],
      ['classifier.bias', { values: new Float32Array(labels).fill(0.25), shape: [labels] }],
    ]);
  const open = (fields: object, labels = 1) =>
    openCrossEncoder(
      configOf({ model_type: 'modernbert', ...fields }),
      ofModern,
      async (name) => numbers(labels).get(name),
      tokenizer,
      512,
    );

  it.each(['cls', 'mean'])(
    'ModernBERT from %s: dense layer, GELU, norm, classifier',
    async (classifier_pooling) => {
      const pooled = (await open({ classifier_pooling, norm_eps: 0.5 })).pooled();
      const rows = [
        [1, -0.5],
        [-2, 1.5],
      ];
      for (const [i, row] of rows.entries()) pooled.add(Float32Array.from(row), i);
      const [p, q] = classifier_pooling === 'cls' ? [1, -0.5] : [-0.5, 0.5];
      const [a, b] = [p! - 2 * q!, 0.5 * p! + 3 * q!].map((x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)));
      // of two numbers the mean is halfway, the deviation half of what is between them
      const half = (a! - b!) / 2;
      const normed = half / Math.sqrt(half ** 2 + 0.5);
      expect(pooled.end()[0]).toBeCloseTo(0.5 * normed - 2 * normed * 2 + 0.25, 12);
    },
  );

  it('DistilBERT: dense layer, ReLU, classifier', async () => {
    const tensors: Numbers = new Map([
      ['pre_classifier.weight', { values: Float32Array.of(1, -2, 0.5, 3), shape: [2, 2] }],
      ['pre_classifier.bias', { values: Float32Array.of(0.5, -1), shape: [2] }],
      ['classifier.weight', { values: Float32Array.of(2, 5), shape: [1, 2] }],
    ]);
    const encoder = await openCrossEncoder(
      configOf({ model_type: 'distilbert' }),
      { ...ofModern, modelType: 'distilbert' },
      async (name) => tensors.get(name),
      tokenizer,
      512,
    );
    const pooled = encoder.pooled();
    pooled.add(Float32Array.of(1, -0.5), 0);
    pooled.add(Float32Array.of(9, 9), 1);
    // 1 + 1 + ½ passes, ½ − 3/2 − 1 does not
    expect(pooled.end()[0]).toBe(5);
  });

  it('of several labels, or of another kind, are refused by name', async () => {
    await expect(open({}, 3)).rejects.toThrow(/a head of 3 labels/);
    await expect(open({ classifier_pooling: 'max' })).rejects.toThrow(/pooling max/);
    await expect(open({ classifier_activation: 'silu' })).rejects.toThrow(/activation silu/);
  });
});

describe('tasks', () => {
  const sentences = [
    ...['Warm the oil slowly.', 'Tie the boat to the quay.', 'Tighten the bolts.', 'A cake with plums'],
    ...['Whisk the whites until they are stiff, in a bowl that is dry. '.repeat(4), 'No'],
  ].map((text) => text.trim());
  const compared = sentences.flatMap((one, i) =>
    sentences.slice(i).map((other, j): [string, string, number] => [one, other, (5 * i + 3 * j) % 7]),
  );
  const similarity = compared.map((row) => row.join('\t')).join('\n');
  const questions = sentences.slice(0, 3).map((query, i) => ({
    ...{ query: `${query} Why?`, positive: sentences[5 - i]! },
    negative: sentences.filter((_, j) => (i + j) % 2 === 0 && j !== 5 - i),
  }));

  it.each(['bert', 'roberta'] as const)(
    '%s: stored and merged but unwritten, the scores are those of the f64 pass; the head is merged as all is',
    async (kind) => {
      const two = [tinyEncoder(kind, 3), tinyEncoder(kind, 8)];
      const [first, second] = two.map(({ numbers }) => numbers) as [Numbers, Numbers];
      const half: Numbers = new Map(
        [...first].map(([name, { values, shape }]) => [
          name,
          { shape, values: values.map((value, i) => (value + second.get(name)!.values[i]!) / 2) },
        ]),
      );
      const models = openModels(() => ({ url: 'https://hub.invalid' }));
      for (const { folder } of two) await models.add(folder);
      const names = two.map(({ folder }) => folder.path);
      const recipe = {
        ...{ mergeMethod: 'linear', parameters: {}, amalgam: {} },
        models: names.map((model) => ({ model, parameters: { weight: 0.5 } })),
      };
      const open = (ref: string) => models.open(ref);
      const report = await runTasks(
        {
          ...{ limit: null, fewshot: null, engine: 'cpu', targets: [{ model: names[0]! }, { recipe }] },
          tasks: [
            { file: { name: 'own.tsv', text: similarity } },
            { file: { name: 'own.jsonl', text: questions.map((row) => JSON.stringify(row)).join('\n') } },
          ],
        },
        {
          models,
          plan: async (target) => ({
            plan: await makePlan('recipe' in target ? target.recipe : copyOf(target.model), open, methodById),
            exact: 'model' in target,
          }),
          ...{ rows: vi.fn(), signal: new AbortController().signal, onProgress: vi.fn() },
        },
      );

      const rust = Rust.fromString(tokenizerOf(KINDS[kind].processor));
      rust.setTruncation(64);
      for (const [m, numbers] of [first, half].entries()) {
        const score = async (one: string, other: string) => {
          const encoding = await rust.encode(one, other);
          return scoreOf(kind, numbers, encoding.getIds(), encoding.getTypeIds());
        };
        const { tasks, embedding } = report.models[m]!;
        expect(embedding).toBe('none; the head scores pairs, from the first token');
        const items = tasks.map((task) => {
          if (!('score' in task)) throw new Error(JSON.stringify(task));
          return task.score.items;
        });
        const scores = await Promise.all(compared.map(([one, other]) => score(one, other)));
        const rho = spearman(
          scores,
          compared.map(([, , alike]) => alike),
        );
        expect(items[0]!.map(({ values }) => values.spearman)).toEqual(
          rho.map((value) => expect.closeTo(value, 9)),
        );
        const corpus = [...new Set(questions.flatMap(({ positive, negative }) => [positive, ...negative]))];
        for (const [q, { query, positive }] of questions.entries()) {
          const found = await Promise.all(
            corpus.map(async (text) => ({ text, score: await score(query, text) })),
          );
          const place = found
            .sort((one, other) => other.score - one.score)
            .findIndex(({ text }) => text === positive);
          expect(items[1]![q]!.values.ndcg_at_10).toBeCloseTo(1 / Math.log2(place + 2), 9);
        }
      }

      const yaml = `merge_method: linear\nmodels: [${names.map((model) => `{model: ${model}, parameters: {weight: 0.5}}`)}]\n`;
      const folders = Object.fromEntries(two.map(({ folder }) => [folder.path, folder]));
      const { tensors } = await mergeInNode(yaml, '', folders);
      expect([...tensors.keys()].sort()).toEqual([...half.keys()].sort());
      for (const name of Object.keys(KINDS[kind].head).flatMap((one) => [`${one}.weight`, `${one}.bias`]))
        for (const [i, value] of tensors.get(name)!.values.entries())
          expect(value).toBeCloseTo(half.get(name)!.values[i]!, 6);
    },
  );
});
