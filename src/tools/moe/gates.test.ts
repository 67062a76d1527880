/** Rows of routers, against the streams and embeddings of the base in f64. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type FileTensor, values } from '../../forward/golden.test.fixture';
import { runOracle } from '../../forward/oracle';
import { fakeStorage } from '../../store/opfs.test.fake';
import {
  type Dense,
  denseModels,
  GATES,
  hidden,
  LLAMA,
  largest,
  vocab,
  written,
} from './mixture.test.support';

beforeEach(() => vi.stubGlobal('navigator', fakeStorage().navigator));

/** Rows of the router of a layer. */
const rowsOf = (tensors: ReadonlyMap<string, FileTensor>, router: string, layer: number) => {
  const { shape } = tensors.get(router.replace('*', String(layer)))!;
  const all = values(tensors.get(router.replace('*', String(layer)))!);
  return Array.from({ length: shape[0]! }, (_, row) => all.slice(row * shape[1]!, (row + 1) * shape[1]!));
};
const unit = (x: Float64Array) => x.map((value) => value / Math.hypot(...x));
const mean = (all: Float64Array[]) =>
  all[0]!.map((_, i) => all.reduce((sum, x) => sum + x[i]!, 0) / all.length);
/** The token that begins a text, and one a character. */
const idsOf = (prompt: string) => [
  0,
  ...[...prompt].map((letter) => vocab.indexOf(letter === ' ' ? 'Ġ' : letter)),
];

describe('routers', () => {
  const prompts = [
    [['cab', 'b a'], ['zoo']],
    [['wild foxes', 'quiz'], []],
    [['deep'], []],
  ] as const;

  it.each([
    ['hidden', (rows: Float64Array[]) => rows.at(-1)!],
    ['hidden_last', (rows: Float64Array[]) => rows.at(-1)!],
    ['hidden_avg', mean],
  ])('%s: streams of the base, positive less negative', async (mode, pool) => {
    const dense = denseModels('qwen3');
    const { tensors } = await written(dense, hidden().replace('gate_mode: hidden', `gate_mode: ${mode}`));
    const [base] = dense as [Dense[0]];
    const streams = (layer: number, texts: readonly string[]) =>
      mean(
        texts.map((text) => pool(runOracle(base.architecture, base.weights, idsOf(text)).residuals[layer]!)),
      );
    for (const { index } of base.architecture.blocks) {
      const rows = rowsOf(tensors, GATES.other, index);
      for (const [e, [positive, negative]] of prompts.entries()) {
        const less = negative.length > 0 ? streams(index, negative) : new Float64Array(32);
        const wanted = unit(streams(index, positive).map((x, i) => x - less[i]!));
        expect(largest(rows[e]!, wanted)).toBeLessThan(2e-6);
      }
    }
  });

  it('of a shared expert: a row by its prompts', async () => {
    const dense = denseModels('qwen2');
    const { tensors } = await written(
      dense,
      hidden('shared_experts: [{source_model: b, positive_prompts: [jump]}]\n'),
    );
    const [base] = dense as [Dense[0]];
    const { residuals } = runOracle(base.architecture, base.weights, idsOf('jump'));
    const [row] = rowsOf(tensors, 'model.layers.*.mlp.shared_expert_gate.weight', 1);
    expect(largest(row!, unit(residuals[1]!.at(-1)!))).toBeLessThan(2e-6);
  });

  it('cheap_embed: sums of embeddings, the same in every layer', async () => {
    const dense = denseModels('qwen3');
    const { tensors } = await written(dense, hidden().replace('gate_mode: hidden', 'gate_mode: cheap_embed'));
    const table = dense[0]!.weights('model.embed_tokens.weight');
    const sum = (texts: readonly string[]) => {
      const ids = texts.flatMap(idsOf);
      return unit(
        Float64Array.from({ length: 32 }, (_, i) => ids.reduce((all, id) => all + table[32 * id + i]!, 0)),
      );
    };
    for (const layer of [0, 1]) {
      const rows = rowsOf(tensors, GATES.other, layer);
      for (const [e, [positive, negative]] of prompts.entries()) {
        const less = negative.length > 0 ? sum(negative) : new Float64Array(32);
        expect(largest(rows[e]!, unit(sum(positive).map((x, i) => x - less[i]!)))).toBeLessThan(2e-6);
      }
    }
  });

  it.each(['random', 'uniform_random'])('%s: by the seed, other rows everywhere', async (mode) => {
    const recipe = (seed: number) =>
      `base_model: base\ngate_mode: ${mode}\nexperts: [{source_model: a}, {source_model: b}]\namalgam: {seed: ${seed}}\n`;
    const dense = denseModels('llama', LLAMA);
    const rows = async (seed: number) => {
      const { tensors } = await written(dense, recipe(seed));
      return [0, 1].flatMap((layer) => rowsOf(tensors, GATES.mixtral, layer).flatMap((row) => [...row]));
    };
    const [one, again, other] = [await rows(1), await rows(1), await rows(2)];
    expect(one).toEqual(again);
    expect(new Set([...one, ...other]).size).toBe(256);
    const square = one.reduce((sum, x) => sum + x * x, 0) / one.length;
    // of 128 draws the mean square is within 50 % of what it is expected to be
    const expected = mode === 'random' ? 1 : 1 / 96;
    expect(Math.abs(square / expected - 1)).toBeLessThan(0.5);
    if (mode === 'uniform_random')
      expect(Math.max(...one.map(Math.abs))).toBeLessThanOrEqual(1 / Math.sqrt(32));
  });

  it('that hardly tell experts apart are named', async () => {
    const alike = hidden().replace('[deep]', '[wild foxes, quiz, quiz]');
    const { report } = await written(denseModels('qwen3'), alike);
    expect(report.notes.join()).toMatch(/alike to the routers/);
  });
});
