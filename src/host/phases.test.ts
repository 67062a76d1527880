import { expect, it } from 'vitest';
import { trackPhases } from './progress-meter';

it('gives one time left over all phases, by paces that were seen', () => {
  let time = 0;
  const job = () =>
    trackPhases(
      [
        { phase: 'downloading', work: 100 },
        { phase: 'searching', work: 4, weight: 10 },
        { phase: 'merging', work: 50 },
      ],
      () => time,
    );
  const first = job();
  time = 500;
  first.begin('downloading', 100);
  first.at(50, 10);
  time = 10_500;
  first.begin('searching', 4);
  first.at(2, 0.5);
  time = 18_500;
  first.rest('opening');
  time = 19_000;
  first.begin('merging', 50);
  first.at(25, 5);
  time = 29_000;
  first.rest('finishing');
  time = 29_250;
  // all of the time, wherever it went
  expect(first.seconds()).toEqual({
    opening: 1,
    downloading: 10,
    searching: 8,
    merging: 10,
    finishing: 0.25,
  });

  const second = job();
  second.begin('downloading', 100);
  // 8 s of download, then 4 values of λ at 0.5/s, then 50 at 5/s
  expect(second.at(20, 10)).toEqual({ phaseNumber: { at: 1, of: 3 }, secondsLeft: 8 + 8 + 10 });
  second.begin('merging', 50);
  expect(second.at(0, 0)).toEqual({ phaseNumber: { at: 3, of: 3 }, secondsLeft: 10 });
});

it('takes a model that is twice as large for twice as slow', () => {
  const paced = trackPhases([{ phase: 'writing', work: 10, weight: 100 }], () => 0);
  paced.begin('writing', 10);
  paced.at(5, 1);
  const larger = trackPhases([{ phase: 'writing', work: 10, weight: 200 }], () => 0);
  larger.begin('writing', 10);
  expect(larger.at(0, 0).secondsLeft).toBe(20);
});
