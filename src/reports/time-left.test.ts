import fc from 'fast-check';
import { expect, test } from 'vitest';
import { steadyTimeLeft } from './time-left';
import { timeShares } from './time-shares';

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

const stages = { read: 1, upload: 0, compute: 4, readback: 0, write: 3 };
const byName = (times: Parameters<typeof timeShares>[0]) =>
  Object.fromEntries(timeShares(times).map(({ stage, seconds }) => [stage, seconds]));

test('all of the time has a name, and none is counted twice', () => {
  const phases = { opening: 2, downloading: 5, hashing: 1, searching: 4, merging: 10, finishing: 1 };
  expect(byName({ stages, phases })).toEqual({
    opening: 2,
    download: 5,
    hashing: 1,
    calibration: 4,
    ...{ read: 1, upload: 0, compute: 4, readback: 0, write: 3 },
    idle: 2,
    finishing: 1,
  });
  const shares = timeShares({ stages, phases }).map(({ share }) => share);
  expect(shares.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12);
});

test('stages that are at work at once share the wall clock', () => {
  const shared = byName({ stages, phases: { merging: 4 } });
  expect(shared).toEqual({ read: 0.5, upload: 0, compute: 2, readback: 0, write: 1.5 });
  // a report of a version without phases
  expect(byName({ stages })).toEqual(stages);
});
