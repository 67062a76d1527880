import { expect, test } from 'vitest';
import type { Progress, TensorReport } from '../../reports/job';
import { progressLog, runShare, runWords, spokenWords } from './runs';

const base: Progress = {
  phase: 'merging',
  item: 'a',
  tensorsDone: 0,
  tensors: 100,
  bytesDone: 0,
  bytes: 1000,
  bytesPerSecond: 0,
  secondsLeft: null,
  stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
  finished: [],
};

test('a phase is told once, files of a download one by one, tensors by tenths', () => {
  const lines: string[] = [];
  let before: Progress | null = null;
  const tell = (now: Progress) => {
    lines.push(...progressLog(before, now, 0).map((l) => l.text));
    before = now;
  };
  tell({ ...base, phase: 'downloading', item: 'model-1' });
  tell({ ...base, phase: 'downloading', item: 'model-1' });
  tell({ ...base, phase: 'downloading', item: 'model-2' });
  for (let done = 0; done <= 100; done += 5) tell({ ...base, tensorsDone: done });
  expect(lines.slice(0, 3)).toEqual(['Downloading: model-1', 'model-2', 'Merging: a']);
  expect(lines.slice(3)).toHaveLength(10);
  expect(lines.at(-1)).toContain('100');
});

test('NaN and Inf are told at once', () => {
  const report = { name: 'layers.0.x', nonFinite: 3 } as TensorReport;
  const [line] = progressLog(base, { ...base, finished: [report] }, 1.5);
  expect(line).toMatchObject({ at: 1.5, tone: 'bad' });
  expect(line?.text).toContain('layers.0.x');
});

test('one line says which step of how many, what is done and how long all of it still takes', () => {
  const searching: Progress = {
    ...base,
    phase: 'searching',
    counted: { done: 3, total: 6, unit: 'values of λ' },
    phaseNumber: { at: 2, of: 4 },
    secondsLeft: 11.2,
  };
  expect(runWords(searching).replaceAll('\u00a0', ' ')).toBe('step 2 of 4 · tuning λ · about 12 s left');
  expect(runShare(searching)).toBe(0.375);
  expect(runWords(base)).toBe('merging');
  const writing = { ...base, phase: 'writing' as const, step: { name: 'Text', at: 0, of: 7, share: 0 } };
  expect([runWords(writing), spokenWords(writing)]).toEqual(['generating text', 'Text: generating text']);
  expect(runWords({ ...base, secondsLeft: 0 }).replaceAll('\u00a0', ' ')).toBe('merging · about 1 s left');
});
