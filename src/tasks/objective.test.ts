import { expect, test } from 'vitest';
import { meanLoss } from '../reports/paired-error';
import type { ScoredModel, TaskInfo, TaskItem } from '../reports/tasks';
import { requireAllParts, taskBlocks } from './objective';

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
