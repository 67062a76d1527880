import { expect, test } from 'vitest';
import { openCmaEs } from './cma-es';

/** Standard normal numbers, the same for a seed. */
function normals(count: number, seed: number): Float64Array {
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  return Float64Array.from(
    { length: count },
    () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()),
  );
}

function minimize(
  cost: (x: Float64Array) => number,
  start: number[],
  sigma: number,
  generations: number,
  seed = 1,
) {
  const search = openCmaEs(start, sigma);
  for (let g = 0; g < generations; g++) {
    const asked = search.ask(normals(search.population * start.length, seed + g));
    search.tell(asked.map(cost));
  }
  return search;
}

test.each([2, 4, 8])('a narrow, turned valley in %i dimensions is followed to its floor', (n) => {
  // condition number 1e4 along a direction that is no axis
  const cost = (x: Float64Array) => {
    const sum = x.reduce((a, b) => a + b - 1, 0) / Math.sqrt(n);
    return x.reduce((all, v) => all + (v - 1) ** 2, 0) + 1e4 * sum ** 2;
  };
  const { mean, sigma } = minimize(cost, new Array<number>(n).fill(3), 1, 60 * n);
  for (const v of mean) expect(v).toBeCloseTo(1, 4);
  expect(sigma).toBeLessThan(0.01);
});

test('only the order of the costs counts, and the same numbers give the same search', () => {
  const cost = (x: Float64Array) => (x[0]! - 2) ** 2 + 3 * (x[1]! + 1) ** 2;
  const plain = minimize(cost, [0, 0], 0.5, 20);
  const bent = minimize((x) => Math.exp(cost(x)), [0, 0], 0.5, 20);
  expect(bent.mean).toEqual(plain.mean);
  expect(minimize(cost, [0, 0], 0.5, 20, 2).mean).not.toEqual(plain.mean);
});

test('the population of the tutorial', () => {
  expect([2, 3, 5, 10].map((n) => openCmaEs(new Array<number>(n).fill(0), 1).population)).toEqual([
    6, 7, 8, 10,
  ]);
});
