import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { aggregate, scoreItem } from './metrics';
import { openTask } from './shipped';
import { mcnemarP, meanStderr, pairedTest } from './statistics';
import type { Item } from './task-items';

const golden = JSON.parse(readFileSync('e2e/fixtures/golden/lm-eval/loglikelihood.json', 'utf8')) as {
  models: Record<
    string,
    {
      multiple_choice: { choices: string[]; gold: number; loglikelihoods: number[] }[];
      acc: number;
      acc_norm: number;
    }
  >;
};
const task = openTask({ name: 'arc_easy' });
const answers = (lls: number[]) => lls.map((loglikelihood) => ({ loglikelihood, isGreedy: false }));
const itemOf = (more: Partial<Item>): Item => ({
  docId: 0,
  requests: [],
  choices: [],
  target: null,
  ...more,
});

test.each(Object.keys(golden.models))('%s: acc and acc_norm of the harness', (name) => {
  const { multiple_choice, acc, acc_norm } = golden.models[name]!;
  const items = multiple_choice.map(({ choices, gold, loglikelihoods }) =>
    scoreItem(task, itemOf({ choices, target: gold }), answers(loglikelihoods)),
  );
  const metrics = aggregate(task.metrics, items);
  expect(metrics.acc!.value).toBe(acc);
  expect(metrics.acc_norm!.value).toBe(acc_norm);
  // √(p (1 − p) / (n − 1)): the sample's deviation of zeros and ones
  expect(metrics.acc!.stderr).toBeCloseTo(Math.sqrt((acc * (1 - acc)) / 4), 12);
});

test('lengths are code points for acc_norm', () => {
  const item = itemOf({ choices: ['☕☕☕', 'abcd'], target: 0 });
  expect(scoreItem(task, item, answers([-4, -5])).values).toEqual({ acc: 1, acc_norm: 0 });
});

test('mc2 is the share of the true choices; lambada whether the word would have been written', () => {
  const mc2 = openTask({ name: 'truthfulqa_mc2' });
  const item = itemOf({ choices: ['a', 'b', 'c'], target: 0, labels: [1, 0, 1] });
  const share = scoreItem(mc2, item, answers([-1000, -1001, -1002])).values.acc!;
  expect(share).toBeCloseTo((1 + Math.exp(-2)) / (1 + Math.exp(-1) + Math.exp(-2)), 12);
  const lambada = openTask({ name: 'lambada_openai' });
  const words = [-1, -3].map((ll, i) =>
    scoreItem(lambada, itemOf({}), [{ loglikelihood: ll, isGreedy: i === 0 }]),
  );
  const { perplexity, acc } = aggregate(lambada.metrics, words);
  expect(perplexity!.value).toBeCloseTo(Math.exp(2), 12);
  expect(perplexity!.stderr).toBeCloseTo(Math.exp(2), 12);
  expect(acc!.value).toBe(0.5);
});

test('an item that is refused is not counted', () => {
  const right = scoreItem(task, itemOf({ choices: ['a', 'b'], target: 0 }), answers([-1, -2]));
  const refused = { ...right, values: {}, refused: 'No token is left.' };
  expect(aggregate(['acc'], [right, refused]).acc).toEqual({ value: 1, stderr: null });
});

describe('is B better than A?', () => {
  test('McNemar’s exact test, by hand', () => {
    expect(mcnemarP(0, 0)).toBe(1);
    expect(mcnemarP(1, 1)).toBe(1);
    // 2 (C(10,0) + C(10,1)) / 2¹⁰
    expect(mcnemarP(1, 9)).toBeCloseTo(22 / 1024, 12);
    expect(mcnemarP(9, 1)).toBeCloseTo(22 / 1024, 12);
    expect(mcnemarP(0, 2000)).toBeLessThan(1e-300);
    // against the normal approximation, where it is good
    expect(mcnemarP(480, 520)).toBeCloseTo(0.2174, 3);
  });
  test('counts the items that only one gets right', () => {
    const pairs = [...Array(9).fill([0, 1]), [1, 0], [1, 1], [0, 0]] as [number, number][];
    const test = pairedTest(pairs);
    expect(test).toMatchObject({ onlyA: 1, onlyB: 9, items: 12, test: 'mcnemar' });
    expect(test.difference).toBeCloseTo(8 / 12, 12);
    expect(test.stderr).toBeCloseTo(meanStderr(pairs.map(([a, b]) => b - a))!, 12);
  });
  test('what is no 0 or 1 is resampled: a clear difference, and none', () => {
    const clear = Array.from({ length: 60 }, (_, i) => [0.3, 0.5 + (i % 5) / 50] as const);
    expect(pairedTest(clear)).toMatchObject({ test: 'bootstrap', onlyB: 60 });
    expect(pairedTest(clear).p).toBeLessThan(0.001);
    const even = Array.from({ length: 60 }, (_, i) => [0.5, i % 2 ? 0.6 : 0.4] as const);
    expect(pairedTest(even).p).toBeGreaterThan(0.5);
  });
});
