import { expect, test } from 'vitest';
import type { Progress } from '../../reports/job';
import { storedWords } from './run';
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
  expect(runWords({ ...base, secondsLeft: 0 }).replaceAll('\u00a0', ' ')).toBe('merging · about 1 s left');
});

test('of finished merges in the storage a word is said at some hundred MB, and again at as many more', () => {
  const said: number[] = [];
  const outputs: { name: string; bytes: number; complete: boolean }[] = [
    { name: 'begun', bytes: 9e9, complete: false },
  ];
  for (let i = 1; i <= 60; i++) {
    outputs.push({ name: `merge ${i}`, bytes: 21.8e6, complete: true });
    const words = storedWords(outputs, `merge ${i}`);
    if (words === undefined) continue;
    expect(words).toMatch(new RegExp(`^${i} merged models take [\\d.]+.[MG]B in this browser\\.$`));
    said.push(i);
  }
  expect(said).toEqual([14, 28, 42, 56]);
  expect(storedWords([{ name: 'one', bytes: 5e9, complete: true }], 'one')).toBeUndefined();
});
