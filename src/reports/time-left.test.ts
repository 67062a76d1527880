import fc from 'fast-check';
import { expect, test } from 'vitest';
import { steadyTimeLeft } from './time-left';

const shown = (estimates: readonly (number | null)[]) => {
  const show = steadyTimeLeft();
  return estimates.map(show);
};

test('the time left that is shown never counts up, whatever the estimates are', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.double({ min: 0, max: 1e4, noNaN: true }))), (estimates) => {
      const said = shown(estimates);
      for (let i = 1; i < said.length; i++) {
        const [before, now] = [said[i - 1], said[i]];
        if (before !== null && now !== null) expect(now).toBeLessThanOrEqual(before!);
      }
    }),
  );
});

test('it follows estimates that fall, keeps back small rises, and takes back what was far too little', () => {
  expect(shown([30, 20, 22, 19])).toEqual([30, 20, 20, 19]);
  // a step that stands still: nothing is said until estimates fall again
  expect(shown([20, 31, 60, 90, 80, 70])).toEqual([20, null, null, null, 80, 70]);
  expect(shown([null, 5, null, 9])).toEqual([null, 5, null, 9]);
});
