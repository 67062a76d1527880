/** Rows made of others, against loops in f64 that share nothing with them. */
import { describe, expect, test } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { createQueue } from '../../forward/queue';
import { makeTogether } from './fit';
import { nearestByLoops, pursuedByLoops, rowsOf } from './oracle.test.support';
import { openProducts, type Rows } from './products';
import { type Making, near, pursue, rowOf } from './pursuit';
import { numbers } from './transplant.test.support';

const rowsFrom = (values: Float32Array<ArrayBuffer>, width: number): Rows => ({
  ...{ values, width },
  count: values.length / width,
});

async function made(start: (i: number) => Making, count: number, dictionary: Rows) {
  const products = openProducts(createQueue(createCpuBackend()), dictionary);
  const makings = Array.from({ length: count }, (_, i) => start(i));
  await makeTogether(makings, products, dictionary.width);
  products.close();
  return makings.map((making) => making.made);
}

describe('orthogonal matching pursuit', () => {
  test.each([
    [40, 16, 5, 1],
    [90, 32, 32, 2],
    [7, 6, 64, 3],
    [130, 10, 10, 4],
  ])('chooses and weighs as in f64: %d rows of %d, up to %d', async (count, width, k, seed) => {
    const dictionary = rowsFrom(numbers(seed, count * width), width);
    const x = rowsFrom(numbers(seed + 50, 9 * width), width);
    const found = await made((i) => pursue(rowOf(x, i), dictionary, k), 9, dictionary);
    for (const [i, { rows, weights, left }] of found.entries()) {
      const wanted = pursuedByLoops(rowsOf(x)[i]!, rowsOf(dictionary), k);
      expect(rows).toEqual(wanted.rows);
      for (const [j, weight] of weights.entries()) expect(weight).toBeCloseTo(wanted.weights[j]!, 7);
      expect(left).toBeCloseTo(wanted.left, 7);
    }
  });

  test('of rows that fit as well the first is taken, and a row made of those chosen never is', async () => {
    const [a, b] = [numbers(8, 12), numbers(9, 12)];
    const doubled = a.map((value) => -value);
    const dictionary = rowsFrom(new Float32Array([...b.map((v) => v / 64), ...a, ...doubled, ...a]), 12);
    const x = Float32Array.from(a, (value, i) => 3 * value + b[i]! / 2);
    const [found] = await made(() => pursue(x, dictionary, 4), 1, dictionary);
    expect(found!.rows).toEqual([1, 0]);
    expect(found!.weights[0]).toBeCloseTo(3, 6);
    expect(found!.weights[1]).toBeCloseTo(32, 5);
    expect(found!.left).toBeLessThan(1e-7);
  });

  test('where only a row is left that is made of those chosen, the row is made', async () => {
    const a = numbers(8, 12);
    const dictionary = rowsFrom(new Float32Array([...a, ...a]), 12);
    const [found] = await made(() => pursue(numbers(10, 12), dictionary, 2), 1, dictionary);
    expect(found!.rows).toEqual([0]);
    expect(found!.weights[0]).toBeCloseTo(pursuedByLoops([...numbers(10, 12)], [[...a]], 1).weights[0]!, 9);
  });

  test('of zeros nothing is made, and rows that are there are themselves', async () => {
    const dictionary = rowsFrom(numbers(5, 20 * 8), 8);
    const x = rowsFrom(new Float32Array([...new Float32Array(8), ...rowOf(dictionary, 13)]), 8);
    const found = await made((i) => pursue(rowOf(x, i), dictionary, 1), 2, dictionary);
    expect(found[0]).toEqual({ rows: [], weights: [], left: 0 });
    const [first] = pursuedByLoops([...rowOf(dictionary, 13)], rowsOf(dictionary), 1).rows;
    expect(found[1]!.rows).toEqual([first]);
  });
});

test('neighbors: the nearest, by the inverse of their distance; of some as near the first', async () => {
  const width = 12;
  const values = numbers(21, 60 * width);
  values.copyWithin(30 * width, 4 * width, 5 * width);
  const dictionary = rowsFrom(values, width);
  const x = rowsFrom(new Float32Array([...numbers(77, 6 * width), ...rowOf(dictionary, 4)]), width);
  const found = await made((i) => near(rowOf(x, i), dictionary, 5), 7, dictionary);
  for (const [i, { rows, weights }] of found.entries()) {
    const wanted = nearestByLoops(rowsOf(x)[i]!, rowsOf(dictionary), 5);
    expect(rows).toEqual(wanted.rows);
    for (const [j, weight] of weights.entries()) expect(weight).toBeCloseTo(wanted.weights[j]!, 9);
  }
  expect(found[6]!.rows.slice(0, 2)).toEqual([4, 30]);
});
