import { describe, expect, it } from 'vitest';
import { maskKey, philox } from './philox';
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

describe('philox4x32-10', () => {
  // known answers of the Random123 distribution (kat_vectors), those with c2 = c3 = 0
  it('gives the published words for counter 0, key 0', () => {
    const out = new Uint32Array(4);
    philox(0, 0, 0, 0, out);
    expect([...out]).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
  });

  it('agrees with a BigInt transcription of the paper', () => {
    const out = new Uint32Array(4);
    for (let i = 0; i < 200; i++) {
      const args = [i * 2654435761, i * 40503, i * 0x9e3779b9, 0xffffffff - i].map((x) => x >>> 0);
      philox(args[0]!, args[1]!, args[2]!, args[3]!, out);
      expect([...out]).toEqual(
        reference([BigInt(args[0]!), BigInt(args[1]!), 0n, 0n], [BigInt(args[2]!), BigInt(args[3]!)]),
      );
    }
  });
});

function reference(counter: bigint[], key: bigint[]): number[] {
  let c = counter;
  let k = key;
  const low = (x: bigint) => BigInt.asUintN(32, x);
  for (let round = 0; round < 10; round++) {
    const p0 = 0xd2511f53n * c[0]!;
    const p1 = 0xcd9e8d57n * c[2]!;
    c = [(p1 >> 32n) ^ c[1]! ^ k[0]!, low(p1), (p0 >> 32n) ^ c[3]! ^ k[1]!, low(p0)];
    k = [low(k[0]! + 0x9e3779b9n), low(k[1]! + 0xbb67ae85n)];
  }
  return c.map(Number);
}

describe('maskKey', () => {
  it('differs by seed, model and tensor, and does not confuse their borders', () => {
    const keys = [
      maskKey(0, 'a', 'bc'),
      maskKey(0, 'ab', 'c'),
      maskKey(1, 'a', 'bc'),
      maskKey(0, 'a', 'bd'),
      maskKey(10, 'a', 'bc'),
    ].map(String);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('is FNV-1a: a hand-computed key stays what it is', () => {
    // FNV-1a 64 of "0", NUL, NUL = ((((basis ^ 0x30) * p) ^ 0) * p ^ 0) * p
    const p = 0x100000001b3n;
    const mul = (x: bigint) => BigInt.asUintN(64, x * p);
    const hash = mul(mul(mul(0xcbf29ce484222325n ^ 0x30n)));
    expect(maskKey(0, '', '')).toEqual([Number(hash & 0xffffffffn), Number(hash >> 32n)]);
  });
});
