import { expect, it } from 'vitest';
import { scoreEmbedded, spearman } from './embedding-metrics';
import type { Item } from './task-items';

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;

it('Spearman with ties is that of scipy 1.17 (stats.spearmanr), and its error that of resampled pairs', () => {
  const a = [0.9, 0.1, 0.4, 0.4, 0.7, -0.2, 0.35, 0.8];
  const b = [5, 0, 2, 3, 3, 1, 2, 4.5];
  expect(mean(spearman(a, b))).toBeCloseTo(0.9454719096527425, 12);
  expect(
    mean(
      spearman(
        a,
        a.map(() => 1),
      ),
    ),
  ).toBe(0);

  // a sample of 300 correlated pairs: the error to first order beside that of 400 samples drawn with replacement
  let state = 3;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const x = Array.from({ length: 300 }, random);
  const y = x.map((value) => value + 0.8 * random());
  const each = spearman(x, y);
  const rho = mean(each);
  const error = Math.sqrt(mean(each.map((v) => (v - rho) ** 2)) / (each.length - 1));
  const drawn = Array.from({ length: 400 }, () => {
    const picks = x.map(() => Math.floor(random() * x.length));
    return mean(
      spearman(
        picks.map((i) => x[i]!),
        picks.map((i) => y[i]!),
      ),
    );
  });
  const center = mean(drawn);
  const resampled = Math.sqrt(mean(drawn.map((v) => (v - center) ** 2)));
  expect(error / resampled).toBeGreaterThan(0.7);
  expect(error / resampled).toBeLessThan(1.4);
});

it('nDCG@10 counts the places of what answers, among the documents of all questions', () => {
  const vector = (text: string) => text.split(',').map(Number);
  const item = (docId: number, texts: string[], labels: number[]): Item => ({
    ...{ docId, choices: [], target: null, labels },
    requests: texts.map((context) => ({ context, continuation: '' })),
  });
  const dot = (one: string, other: string) =>
    vector(one).reduce((sum, v, i) => sum + v * vector(other)[i]!, 0);
  // of the first the right one is second; of the second both are, at places 1 and 3
  const items = [
    item(0, ['1,0', '0.8,0', '0.9,0'], [1, 0]),
    item(1, ['0,1', '0.5,1', '0,0.1', '0.1,0.5'], [1, 1, 0]),
  ];
  const [first, second] = scoreEmbedded('retrieval', items, dot);
  expect(first!.values.ndcg_at_10).toBeCloseTo(1 / Math.log2(3), 12);
  expect(second!.values.ndcg_at_10).toBeCloseTo((1 + 1 / 2) / (1 + 1 / Math.log2(3)), 12);
});
