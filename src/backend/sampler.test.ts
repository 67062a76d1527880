import { describe, expect, it } from 'vitest';
import { randomOf, sample } from './sampler';

const logits = Float32Array.from([1, 3, 3, -1, 0.5, Number.NEGATIVE_INFINITY]);
/** The sums of segments of three columns, one, and two. */
const begins = [0, 3, 4];
const scores = {
  logits,
  sums: {
    begins,
    values: Float32Array.from(
      begins.flatMap((begin, s) => {
        const part = [...logits.subarray(begin, begins[s + 1])];
        const top = Math.max(...part);
        return [top, part.reduce((sum, x) => sum + Math.exp(x - top), 0)];
      }),
    ),
  },
};
const shares = (sampling: { temperature: number; topP: number }) => {
  const counts = new Array<number>(logits.length).fill(0);
  const draws = 20_000;
  for (let step = 0; step < draws; step++) counts[sample(scores, sampling, randomOf(7, 0, step))]!++;
  return counts.map((n) => n / draws);
};
const softmax = (temperature: number) => {
  const weights = [...logits].map((x) => Math.exp((x - 3) / temperature));
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((w) => w / total);
};

describe('sample', () => {
  it('greedy takes the largest, the first of equals', () => {
    expect(sample(scores, { temperature: 0, topP: 1 }, randomOf(0, 0, 0))).toBe(1);
  });

  it.each([0.5, 1, 3])('draws at temperature %f as often as the softmax says', (temperature) => {
    const wanted = softmax(temperature);
    // five standard deviations of 20 000 draws
    for (const [i, share] of shares({ temperature, topP: 1 }).entries()) {
      const deviation = Math.sqrt((wanted[i]! * (1 - wanted[i]!)) / 20_000);
      expect(Math.abs(share - wanted[i]!)).toBeLessThanOrEqual(5 * deviation + 1e-9);
    }
  });

  it('top-p keeps the smallest set that reaches p and draws in proportion', () => {
    const all = softmax(1);
    // the two largest reach 0.8, the next one is needed for 0.9
    expect(all[1]! + all[2]!).toBeGreaterThan(0.8);
    expect(all[1]! + all[2]!).toBeLessThan(0.9);
    expect(shares({ temperature: 1, topP: 0.8 }).map((s) => s > 0)).toEqual([
      false,
      true,
      true,
      false,
      false,
      false,
    ]);
    const three = shares({ temperature: 1, topP: 0.9 });
    expect(three.map((s) => s > 0)).toEqual([true, true, true, false, false, false]);
    expect(three[0]).toBeCloseTo(all[0]! / (all[0]! + all[1]! + all[2]!), 1);
    // a p that nothing alone falls short of leaves the most probable
    expect(shares({ temperature: 1, topP: 1e-9 })[1]).toBe(1);
  });

  it('depends on seed, sequence and step, and on nothing else', () => {
    const draw = (seed: number, sequence: number, step: number) =>
      sample(scores, { temperature: 1, topP: 1 }, randomOf(seed, sequence, step));
    const row = (seed: number, sequence: number) =>
      Array.from({ length: 40 }, (_, step) => draw(seed, sequence, step));
    expect(row(1, 0)).toEqual(row(1, 0));
    expect(row(1, 0)).not.toEqual(row(2, 0));
    expect(row(1, 0)).not.toEqual(row(1, 1));
  });
});
