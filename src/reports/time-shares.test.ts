import { expect, test } from 'vitest';
import { timeShares } from './time-shares';

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
