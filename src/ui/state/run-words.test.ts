import { expect, test } from 'vitest';
import type { Progress } from '../../reports/job';
import { runShare, runWords, spokenWords } from './runs';

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
  expect(runWords({ ...base, secondsLeft: 0 })).toBe('merging');
});
