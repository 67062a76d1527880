/** The exact select over a tensor in tiles, against a sort by magnitude and then by flat index. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { BLOCK } from '../../backend/kernel';
import { floats } from '../../backend/kernels/kernels.test.support';
import type { TensorPlan } from '../plan/plan';
import { searchKeys } from './radix-search';
import { beginSearch, type KeySearch } from './radix-select';
import type { TensorTask } from './tensor-task';
import { cutTiles } from './tiles';
import { openWorkspace } from './workspace';

const engine = createCpuBackend();
/** Large enough that only every thirteenth element is sampled. */
const LARGE = 9 * BLOCK + 77;
const SAMPLED = 13;

/** Searches for the k largest of the values in tiles; returns the elements inside each threshold and how many passes it took. */
async function search(values: Float32Array<ArrayBuffer>, ranks: readonly number[], blocks: number) {
  const n = values.length;
  const work = openWorkspace(engine, Math.max(1, ranks.length), blocks * BLOCK);
  let passes = 0;
  const task: TensorTask = {
    plan: { name: 'w', elements: n } as TensorPlan,
    form: 'delta',
    work,
    read: async () => new Uint8Array(0),
    raw: work.raw,
    tiles: cutTiles(n, work.stride),
    spareBytes: 0,
    prefetch() {},
    async pass(visit) {
      passes++;
      for (const tile of this.tiles) {
        engine.write(work.values, 4 * work.stride, new Uint8Array(values.slice(tile.begin, tile.end).buffer));
        await visit(tile, tile.end - tile.begin);
        await engine.read([]);
      }
    },
    close() {},
  };
  const searches = ranks.map(
    (k): KeySearch => ({ buffer: work.values, offset: work.stride, search: beginSearch(k, n) }),
  );
  await searchKeys(task, searches, () => {});
  work.close();
  const keys = new Uint32Array(values.buffer).map((bits) => bits & 0x7fffffff);
  const inside = searches.map(({ threshold }) => {
    const { key, cutBlock, cutQuota } = threshold!;
    let quota = cutQuota;
    return [...keys.keys()].filter((i) => {
      const block = Math.floor(i / BLOCK);
      return keys[i]! > key || (keys[i] === key && (block < cutBlock || (block === cutBlock && quota-- > 0)));
    });
  });
  return { inside, passes };
}

/** The k largest magnitudes, those of lowest index among equals. */
function largest(values: Float32Array, k: number): number[] {
  const keys = new Uint32Array(values.buffer).map((bits) => bits & 0x7fffffff);
  const order = [...keys.keys()].sort((a, b) => keys[b]! - keys[a]! || a - b);
  return order.slice(0, k).sort((a, b) => a - b);
}

async function expectExact(values: Float32Array<ArrayBuffer>, ranks: readonly number[], blocks: number) {
  const { inside, passes } = await search(values, ranks, blocks);
  for (const [i, k] of ranks.entries()) expect(inside[i]).toEqual(largest(values, k));
  return passes;
}

const bell = (n: number, seed: number) => {
  const noise = floats(3 * n, seed).map((x) => x % 1);
  return Float32Array.from({ length: n }, (_, i) => noise[i]! + noise[n + i]! + noise[2 * n + i]!);
};
/** As differences of BF16 weights are: many elements share few magnitudes. */
const coarse = (n: number, seed: number) => bell(n, seed).map((x) => Math.round(x * 20) / 1024);

it.each([1, 3, 16])('one pass where the tensor is alike all over, tiles of %i blocks', async (blocks) => {
  const ranks = [Math.floor(0.2 * LARGE), Math.floor(0.5 * LARGE), Math.floor(0.9 * LARGE)];
  expect(await expectExact(bell(LARGE, 30), ranks, 16)).toBe(1);
  for (const values of [bell(LARGE, 32), coarse(LARGE, 34)]) {
    expect(await expectExact(values, ranks, blocks)).toBeLessThanOrEqual(2);
  }
});

it('a second pass where the first tile is unlike the rest', async () => {
  const values = bell(LARGE, 36).map((x, i) => (i < BLOCK ? 100 * x : x));
  expect(await expectExact(values, [Math.floor(0.3 * LARGE)], 1)).toBe(2);
});

it('digit by digit where the sample misleads', async () => {
  const values = bell(LARGE, 38).map((x, i) => (i % SAMPLED === 0 ? 100 + x : x));
  expect(await expectExact(values, [Math.floor(0.5 * LARGE)], 3)).toBeGreaterThan(4);
  // what is not sampled crowds around the median: there is no room to collect it
  const crowded = Float32Array.from({ length: LARGE }, (_, i) => {
    const even = ((i * 7919) % LARGE) / LARGE - 0.5;
    return 1 + even * (i % SAMPLED === 0 ? 2 : 0.02);
  });
  expect(await expectExact(crowded, [Math.floor(0.5 * LARGE)], 3)).toBeGreaterThan(4);
});

it('ties across blocks and tiles', async () => {
  const same = new Float32Array(LARGE).fill(-0.25);
  for (const k of [1, BLOCK, BLOCK + 1, 3 * BLOCK - 1, LARGE - 1, LARGE]) {
    for (const blocks of [2, 16]) expect(await expectExact(same, [k], blocks)).toBe(1);
  }
  // a few equal magnitudes among others, where the quota runs out in the middle
  const few = bell(LARGE, 40).map((x, i) => (i % 1000 === 3 ? 0.125 : x));
  const above = few.filter((x) => Math.abs(x) > 0.125).length;
  await expectExact(few, [above + 5, above + 17, above + 36], 2);
});

it('zeros of both signs, the smallest and the largest numbers, one element and all', async () => {
  const special = [0, -0, 2 ** -149, -(2 ** -127), 2 ** -126, 3.4e38, -3.4e38];
  const values = Float32Array.from({ length: LARGE }, (_, i) => special[(i * 31) % special.length]!);
  for (const k of [1, 7, Math.floor(0.3 * LARGE), Math.floor(0.7 * LARGE), LARGE])
    await expectExact(values, [k], 3);
});

it('NaN and infinities, where they are carried, are the largest', async () => {
  const values = bell(LARGE, 42).map((x, i) =>
    i % 5000 === 7 ? Number.NaN : i % 4000 === 9 ? -Infinity : x,
  );
  await expectExact(values, [4, 12, Math.floor(0.2 * LARGE)], 3);
});

it('any values, any rank, any tiles', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(1, 100, BLOCK, 3 * BLOCK + 1, LARGE),
      fc.nat(1000),
      fc.constantFrom(bell, coarse, floats),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.constantFrom(1, 2, 5, 16),
      async (n, seed, make, density, blocks) => {
        await expectExact(make(n, seed), [Math.max(1, Math.floor(density * n))], blocks);
      },
    ),
    { numRuns: 25 },
  );
});
