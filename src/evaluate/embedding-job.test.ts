/** Embeddings of encoders and decoders: rows by transformers' own logits, pooling by the formulas of sentence-transformers. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { diskFolder, SAMPLES } from '../../e2e/disk-folder';
import { mergeInNode } from '../../e2e/merge-in-node';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { copyOf } from '../formats/recipe';
import { ENCODER_NAMES } from '../forward/families.test.cases';
import { openModels } from '../host/models';
import { memoryFolder, safetensors } from '../inputs/memory-models.test.support';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import type { ModelFile } from '../sources/model-folder';
import { checkLastStream } from './embedded.test.cases';
import { openEmbedder } from './embedder';
import { runTasks } from './task-job';

vi.stubGlobal('navigator', { hardwareConcurrency: 1 });

describe('the last stream of an encoder that was saved without its head', () => {
  it.each(ENCODER_NAMES)('%s: under the head it gives the logits of transformers', (name) =>
    checkLastStream(name, async (path) => new Uint8Array(await readFile(path)), createCpuBackend()),
  );
});

/** Files of a model by their path. */
const filesOf = (files: Record<string, unknown>) => async (path: string) => {
  const content = files[path];
  if (content === undefined) return undefined;
  return content instanceof Uint8Array
    ? (content as Uint8Array<ArrayBuffer>)
    : new TextEncoder().encode(JSON.stringify(content));
};
const tensors = new Map<string, { values: Float32Array; shape: readonly number[] }>();
const tensorOf = async (name: string) => tensors.get(name);
const codes = (text: string) => [...text].map((letter) => letter.charCodeAt(0));
/** A letter is a token; one stands in front and one behind. */
const letters = { prefix: [1], suffix: [2], encodeAll: async (texts: readonly string[]) => texts.map(codes) };
const module = (type: string, path = '') => ({ type: `sentence_transformers.models.${type}`, path });
const ROWS = [
  [1, -2],
  [3, 4],
  [-1, 5],
  [2, 2],
].map((row) => Float32Array.from(row));

describe('pooling, dense layers, norms and prompts of sentence-transformers', () => {
  const poolings: [string, object, number[]][] = [
    ['cls', { pooling_mode_cls_token: true }, [1, -2]],
    ['lasttoken', { pooling_mode_lasttoken: true }, [2, 2]],
    ['mean', { pooling_mode_mean_tokens: true }, [5 / 4, 9 / 4]],
    ['max', { pooling_mode_max_tokens: true }, [3, 5]],
    ['mean_sqrt_len_tokens', { pooling_mode_mean_sqrt_len_tokens: true }, [5 / 2, 9 / 2]],
    ['weightedmean', { pooling_mode_weightedmean_tokens: true }, [12 / 10, 29 / 10]],
  ];
  it.each(poolings)('%s, in the words of version 6 and of those before', async (mode, old, expected) => {
    for (const config of [{ pooling_mode: mode }, old]) {
      const files = {
        'modules.json': [module('Transformer'), module('Pooling', '1_Pooling')],
        '1_Pooling/config.json': config,
      };
      const embedder = await openEmbedder(filesOf(files), tensorOf, letters, 2, 512);
      const pooled = embedder.pooled(ROWS.length, 0);
      for (const [at, row] of ROWS.entries()) pooled.add(row, at);
      for (const [i, value] of pooled.end().entries()) expect(value).toBeCloseTo(expected[i]!, 12);
    }
  });

  it('joins several, leaves prompts out where it says so, and goes through dense layer and norm', async () => {
    const numbers = Float32Array.from({ length: 15 }, (_, i) => ((i * 7) % 5) / 4 - 0.5);
    tensors.set('2_Dense/linear.weight', { values: numbers.subarray(0, 12), shape: [3, 4] });
    tensors.set('2_Dense/linear.bias', { values: numbers.subarray(12), shape: [3] });
    const files = {
      'modules.json': [
        ...[module('Transformer', '0_Body'), module('Pooling', '1_Pooling')],
        ...[module('Dense', '2_Dense'), module('Normalize', '3_Normalize')],
      ],
      '1_Pooling/config.json': { pooling_mode: ['cls', 'mean'], include_prompt: false },
      '2_Dense/config.json': { activation_function: 'torch.nn.modules.activation.Tanh' },
      '0_Body/sentence_bert_config.json': { max_seq_length: 7, do_lower_case: true },
      'config_sentence_transformers.json': {
        ...{ prompts: { query: 'q:', document: '' }, similarity_fn_name: 'dot' },
      },
    };
    const embedder = await openEmbedder(filesOf(files), tensorOf, letters, 2, 512);
    expect(embedder.words).toBe('the first token and the mean of the tokens, 3 dimensions, normed');
    const encoded = await embedder.encode([
      { text: 'ABCDEFG', role: 'query' },
      { text: 'Ab', role: 'document' },
    ]);
    expect(encoded).toEqual([
      { ids: [1, ...codes('q:abc'), 2], left: 3 },
      { ids: [1, ...codes('ab'), 2], left: 0 },
    ]);

    const pooled = embedder.pooled(4, 1);
    for (const [at, row] of ROWS.entries()) pooled.add(row, at);
    const x = [3, 4, (3 - 1 + 2) / 3, (4 + 5 + 2) / 3];
    const y = [0, 1, 2].map((o) =>
      Math.tanh(x.reduce((sum, v, i) => sum + numbers[o * 4 + i]! * v, numbers[12 + o]!)),
    );
    const ours = pooled.end();
    for (const [i, value] of y.entries()) expect(ours[i]).toBeCloseTo(value / Math.hypot(...y), 6);
    expect(embedder.similarity(ours, ours)).toBeCloseTo(1, 6);
  });

  const odd: [string, Record<string, unknown>, RegExp][] = [
    ['a module', { 'modules.json': [module('LSTM', '1')] }, /module LSTM/],
    [
      'a pooling',
      { 'modules.json': [module('Pooling', '1')], '1/config.json': { pooling_mode: 'median' } },
      /pooling median/,
    ],
    [
      'a similarity',
      { 'config_sentence_transformers.json': { similarity_fn_name: 'hamming' } },
      /similarity hamming/,
    ],
    [
      'an activation',
      { 'modules.json': [module('Dense', '2')], '2/config.json': { activation_function: 'a.Odd' } },
      /activation a\.Odd/,
    ],
    ['a pickle', { 'modules.json': [module('Dense', '2')], '2/config.json': {} }, /2 without its weights/],
  ];
  it.each(odd)('%s that is not known is named', async (_, files, words) => {
    await expect(openEmbedder(filesOf(files), tensorOf, letters, 2, 512)).rejects.toThrow(words);
  });
});

describe('tasks of embeddings', () => {
  /** Files of a dense layer of five outputs whose weights are `value` times small whole numbers. */
  const denseOf = (value: number) => {
    const file = safetensors({ 'linear.weight': ['F32', [5, 128]], 'linear.bias': ['F32', [5]] });
    const numbers = Float32Array.from({ length: 645 }, (_, i) => value * (((i * 5) % 7) - 3));
    file.set(new Uint8Array(numbers.buffer), file.length - numbers.byteLength);
    return memoryFolder('', {
      'modules.json': [module('Transformer'), module('Pooling', '1_Pooling'), module('Dense', '2_Dense')],
      '1_Pooling/config.json': { pooling_mode: 'mean' },
      '2_Dense/config.json': { activation_function: 'torch.nn.modules.linear.Identity' },
      '2_Dense/model.safetensors': file,
    }).files;
  };
  async function scored(
    tasks: Parameters<typeof runTasks>[0]['tasks'],
    more: (model: string) => readonly ModelFile[] = () => [],
    limit: number | null = null,
  ) {
    const models = openModels(() => ({ url: 'https://hub.invalid' }));
    for (const name of ['base', 'workshop']) {
      const folder = await diskFolder(name, join(SAMPLES, name));
      const own = more(name);
      const kept = folder.files.filter(({ path }) => !own.some((file) => file.path === path));
      await models.add({ ...folder, files: [...kept, ...own] });
    }
    const recipe = {
      ...{ mergeMethod: 'linear', parameters: {}, amalgam: {} },
      models: ['base', 'workshop'].map((model) => ({ model, parameters: { weight: 0.5 } })),
    };
    const request = { tasks, limit, fewshot: null, engine: 'cpu' as const };
    const open = (ref: string) => models.open(ref);
    return runTasks(
      { ...request, targets: [{ model: 'base' }, { recipe }] },
      {
        models,
        plan: async (target) => ({
          plan: await makePlan('recipe' in target ? target.recipe : copyOf(target.model), open, methodById),
          exact: 'model' in target,
        }),
        ...{ rows: vi.fn(), signal: new AbortController().signal, onProgress: vi.fn() },
      },
    );
  }
  const lasttoken = memoryFolder('', {
    'modules.json': [
      ...[module('Transformer'), module('Pooling', '1_Pooling'), module('Normalize', '2_Normalize')],
    ],
    '1_Pooling/config.json': { pooling_mode: 'lasttoken' },
  }).files;

  it('of a merge that is never written, by the modules beside it; items carry the metric', async () => {
    const report = await scored(
      [{ name: 'sample_similarity' }, { name: 'sample_retrieval' }],
      () => lasttoken,
    );
    for (const { tasks, embedding, tokens } of report.models) {
      expect(embedding).toBe('the last token, 128 dimensions, normed');
      expect(tokens).toBeGreaterThan(1000);
      for (const [t, metric] of ['spearman', 'ndcg_at_10'].entries()) {
        const outcome = tasks[t]!;
        if (!('score' in outcome)) throw new Error(JSON.stringify(outcome));
        const { value, stderr } = outcome.score.metrics[metric]!;
        const items = outcome.score.items.map((item) => item.values[metric]!);
        expect(value).toBeCloseTo(items.reduce((a, b) => a + b, 0) / items.length, 12);
        expect(Math.abs(value)).toBeLessThanOrEqual(1);
        expect(stderr).toBeGreaterThan(0);
      }
    }
  });

  it('of pairs of one’s own: what is the same is most alike, and a row without a score is left out', async () => {
    const text = ['a', 'The boat is at the quay.', 'x'].join('\t');
    const pairs = ['Warm the oil slowly.', 'Tie the boat to the quay.', 'Tighten the bolts.'].flatMap(
      (one) => [`${one}\t${one}\t1`, `${one}\tA cake with plums, ${one.length}\t0`],
    );
    const own = { file: { name: 'own.tsv', text: ['one\ttwo\thow alike', ...pairs, text].join('\n') } };
    const [outcome] = (await scored([own])).models[0]!.tasks;
    if (!outcome || !('score' in outcome)) throw new Error(JSON.stringify(outcome));
    const { items, metrics } = outcome.score;
    expect(items.filter(({ refused }) => refused !== undefined).map(({ docId }) => docId)).toEqual([6]);
    // ranks 5 5 5 1 2 3 (the same text is as alike as can be) beside 5 5 5 2 2 2
    expect(metrics.spearman!.value).toBeCloseTo(13.5 / Math.sqrt(15.5 * 13.5), 9);
  });

  it('through the merged weights of a dense layer, written and unwritten', async () => {
    const dense = (model: string) => denseOf(model === 'base' ? 1 : -3);
    const report = await scored([{ name: 'sample_similarity' }], dense, 20);
    const rho = report.models.map(({ tasks: [only], embedding }) => {
      expect(embedding).toBe('the mean of the tokens, 5 dimensions');
      return only && 'score' in only ? only.score.metrics.spearman!.value : Number.NaN;
    });
    const folders = await Promise.all(
      ['base', 'workshop'].map(async (name) => {
        const folder = await diskFolder(name, join(SAMPLES, name));
        return [name, { ...folder, files: [...folder.files, ...dense(name)] }] as const;
      }),
    );
    const yaml =
      'merge_method: linear\nmodels: [{model: base, parameters: {weight: 0.5}}, {model: workshop, parameters: {weight: 0.5}}]\n';
    const { tensors, shards } = await mergeInNode(yaml, SAMPLES, Object.fromEntries(folders));
    // -1 is the mean of 1 and -3
    const linear = tensors.get('linear.weight')!;
    expect([...linear.values.subarray(0, 7)]).toEqual([3, -2, 0, 2, -3, -1, 1]);
    const written = memoryFolder('written', {
      'model.safetensors': shards[0]!.slice(),
      '2_Dense/model.safetensors': shards[1]!.slice(),
    }).files;
    const merged = (model: string) => [
      ...dense(model).filter(({ path }) => !path.endsWith('.safetensors')),
      ...written,
    ];
    const again = await scored([{ name: 'sample_similarity' }], merged, 20);
    const [only] = again.models[0]!.tasks;
    expect(only && 'score' in only ? only.score.metrics.spearman!.value : null).toBeCloseTo(rho[1]!, 6);
    expect(rho[0]).not.toBeCloseTo(rho[1]!, 6);
  });

  it('do not go with tasks of what is written', async () => {
    const both = scored([{ name: 'sample_similarity' }, { name: 'sample_trades' }]);
    await expect(both).rejects.toThrow(/embeddings/);
  });
});
