import { expect, it } from 'vitest';
import type { Progress, TensorReport } from '../reports/job';
import { progressMeter } from './progress-meter';

it('throttles, keeps finished tensors for the next message, and takes the rate from the recent past', () => {
  let time = 0;
  const sent: Progress[] = [];
  const meter = progressMeter(
    (p) => sent.push(structuredClone(p)),
    () => undefined,
    () => time,
  );
  meter.begin('merging', 1000, 2);
  expect(sent).toHaveLength(1);
  time = 50;
  meter.advance(100, 'a');
  meter.finishTensor({ name: 'a' } as TensorReport);
  expect(sent).toHaveLength(1);
  time = 200;
  meter.advance(100, 'b');
  expect(sent).toHaveLength(2);
  expect(sent[1]).toMatchObject({
    item: 'b',
    bytesDone: 200,
    tensorsDone: 1,
    bytesPerSecond: 1000,
    secondsLeft: 0.8,
  });
  expect(sent[1]!.finished.map((t) => t.name)).toEqual(['a']);
  meter.flush();
  expect(sent[2]!.finished).toEqual([]);
});

it('knows no ETA before anything has moved', () => {
  const sent: Progress[] = [];
  progressMeter(
    (p) => sent.push(p),
    () => undefined,
    () => 0,
  ).begin('downloading', 10, 0);
  expect(sent[0]).toMatchObject({ phase: 'downloading', secondsLeft: null, bytesPerSecond: 0 });
});
