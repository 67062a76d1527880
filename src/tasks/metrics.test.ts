import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { meanLoss } from '../reports/paired-error';
import type { ScoredModel, TaskInfo, TaskItem } from '../reports/tasks';
import { comparisons } from './harness-report';
import { aggregate, scoreItem } from './metrics';
import { requireAllParts, taskBlocks } from './objective';
import { openTask } from './shipped';
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

test('is B better than A? what only one gets right, judged by its error', () => {
  const items = (values: number[]) =>
    values.map((acc, docId) => ({ docId, values: { acc } }) as unknown as TaskItem);
  const model = (values: number[]) =>
    ({ tasks: [{ score: { metrics: {}, items: items(values) } }] }) as unknown as ScoredModel;
  const of = (a: number[], b: number[]) =>
    comparisons({ tasks: [{ task: 'own', metrics: ['acc'] } as TaskInfo], models: [model(a), model(b)] })[0]!;
  // nine of twelve are right in B alone, one in A alone
  const a = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0];
  const b = [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0];
  const found = of(a, b);
  expect(found).toMatchObject({ task: 'own', a: 0, b: 1, items: 12, verdict: 'better' });
  expect(found.difference).toBeCloseTo(8 / 12, 12);
  // √(Σ (d − d̄)² / (n − 1) / n)
  expect(found.stderr).toBeCloseTo(Math.sqrt((10 - 64 / 12) / 11 / 12), 12);
  expect(of(b, a)).toMatchObject({ verdict: 'worse' });
  expect(of(a, a.toReversed())).toMatchObject({ verdict: 'alike' });
  // an item that only one was scored on does not count
  expect(of(a.slice(0, 5), b).items).toBe(5);
});

const items = (right: number) =>
  Array.from({ length: 9 }, (_, docId): TaskItem => {
    const acc = docId < right ? 1 : 0;
    return { docId, target: 0, loglikelihoods: [acc ? 0 : -2, -1], isGreedy: [], values: { acc } };
  });
const info = [{ task: 't', metrics: ['acc'] }] as TaskInfo[];
const scored = (all: TaskItem[]): ScoredModel['tasks'] => [{ score: { metrics: {}, items: all } }];

test('every item is in one part; a loss is 1 − the metric, and the right answers’ probability gives it a slope', () => {
  const blocks = taskBlocks(info, scored(items(6)), 'acc');
  expect(Object.values(blocks).map(([task]) => task!.length)).toEqual([3, 3, 3]);
  expect(meanLoss(blocks.choosing).mean).toBeCloseTo(1 / 3, 12);
  expect(meanLoss(blocks.tuning).mean).toBeCloseTo(1 / 3, 5);
  const surer = items(6).map((item) => ({ ...item, loglikelihoods: [item.loglikelihoods[0]! + 0.5, -1] }));
  expect(meanLoss(taskBlocks(info, scored(surer), 'acc').tuning).mean).toBeLessThan(
    meanLoss(blocks.tuning).mean,
  );
  const [first, ...rest] = items(6);
  const refused = taskBlocks(info, scored([{ ...first!, refused: 'too long' }, ...rest]), 'acc');
  expect(refused.tuning[0]!.length).toBe(2);
  expect(() => requireAllParts(info, taskBlocks(info, scored(items(1).slice(0, 2)), 'acc'))).toThrow(
    /^Of t too few rows could be asked/,
  );
  expect(() => taskBlocks(info, scored(items(1)), 'acc_norm')).toThrow(/t has no acc_norm/);
});
