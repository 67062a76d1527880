import { expect, test } from 'vitest';
import type { Backend } from '../../backend/backend';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { decompose } from '../../merge/tensor/decomposition';
import { matrixOf, readDelta } from '../../merge/tensor/panel-products';
import { lowRankDelta, modelFolder, plus, random, sidesOf, type Weights } from './compare.test.support';
import { deltaMatrix, measurePair, openPair, openPairWorkspace } from './pair-task';
import { pairTensors } from './tensor-pairs';

const SHAPE: [number, number] = [1000, 100];
const base: Record<string, Weights> = { w: random(SHAPE, 0.1, 1) };
const tuned = { w: plus(base.w!, lowRankDelta(SHAPE, 5, 0.01, 2)) };

/** An engine that counts what it holds, with buffers of at most so many bytes. */
function limited(maxBufferBytes: number): Backend & { held: Set<object>; largest: number } {
  const engine = createCpuBackend();
  const held = new Set<object>();
  let largest = 0;
  return {
    ...engine,
    maxBufferBytes,
    held,
    get largest() {
      return largest;
    },
    allocate(bytes, label) {
      if (bytes > maxBufferBytes) throw new Error(`${label} of ${bytes} bytes`);
      largest = Math.max(largest, bytes);
      const buffer = engine.allocate(bytes, label);
      held.add(buffer);
      return buffer;
    },
    free(buffer) {
      held.delete(buffer);
      engine.free(buffer);
    },
  };
}

async function study(engine: Backend, tileElements?: number) {
  const {
    base: one,
    tuned: two,
    read,
  } = await sidesOf([modelFolder('base', base), modelFolder('tuned', tuned)]);
  const [pair] = pairTensors(one, two).shared;
  let reads = 0;
  const counting: typeof read = (ref, begin, end) => {
    reads += end - begin;
    return read(ref, begin, end);
  };
  const work = openPairWorkspace(engine, [pair!], tileElements);
  const open = openPair(pair!, work, counting);
  const sums = await measurePair(open, 0);
  const delta = deltaMatrix(open);
  const options = { count: 6, seed: 1, name: 'w' };
  const svd = await decompose(matrixOf(delta), { ...options, way: 'randomized' });
  const values = await readDelta(delta);
  open.close();
  work.close();
  return { sums, svd, values, reads, staying: open.staying };
}

test('a Δ that does not stay on the device is made again for every product, with the same bits', async () => {
  const whole = await study(createCpuBackend());
  expect(whole.staying).toBe(SHAPE[0] * SHAPE[1]);
  // tiles of 128 rows, of which four stay, or of 64 rows, of which ten do
  for (const [tileElements, staying] of [
    [undefined, 51_200],
    [8192, 64_000],
  ] as const) {
    const engine = limited(300_000);
    const streamed = await study(engine, tileElements);
    expect(streamed.staying).toBe(staying);
    expect(streamed.sums).toEqual(whole.sums);
    expect(streamed.svd).toEqual(whole.svd);
    expect(streamed.values).toEqual(whole.values);
    expect(engine.largest).toBeLessThanOrEqual(300_000);
    expect(engine.held.size).toBe(0);
  }
});

test('a Δ that stays is read once, whatever is done with it', async () => {
  const bytes = 2 * 4 * SHAPE[0] * SHAPE[1];
  expect((await study(createCpuBackend(), 4096)).reads).toBe(bytes);
  expect((await study(limited(300_000))).reads).toBeGreaterThan(3 * bytes);
});

test('rows that are longer than a tile are measured in pieces', async () => {
  const long = { w: random([3, 9000], 0.1, 3) };
  const other = { w: plus(long.w, random([3, 9000], 0.01, 4)) };
  const {
    base: one,
    tuned: two,
    read,
  } = await sidesOf([modelFolder('base', long), modelFolder('tuned', other)]);
  const [pair] = pairTensors(one, two).shared;
  const measured = [];
  for (const tileElements of [4096, 8192, 1 << 20]) {
    const work = openPairWorkspace(createCpuBackend(), [pair!], tileElements);
    const open = openPair(pair!, work, read);
    measured.push(await measurePair(open, 0));
    open.close();
    work.close();
  }
  expect(measured[1]).toEqual(measured[2]);
  expect(measured[0]).toEqual(measured[2]);
  expect(Math.hypot(...measured[0]!.rowSquares.map(Math.sqrt))).toBeCloseTo(
    Math.sqrt(measured[0]!.squares),
    9,
  );
});

test.each(['F32', 'F16', 'BF16'] as const)(
  '%s as it is stored and decoded first: the same bits',
  async (dtype) => {
    const shapes = [[70, 131], [3, 9000], [1, 7], [64]];
    const [plain, odd] = [0.1, 1e-18];
    for (const [size, other] of [
      [plain, dtype],
      [odd, dtype],
      [plain, 'F32'],
    ] as const) {
      const weights = (seed: number) =>
        Object.fromEntries(shapes.map((shape, i) => [`w${i}`, random(shape, size, seed + i)]));
      const before = weights(10);
      const after = Object.fromEntries(
        Object.entries(weights(20)).map(([name, change]) => [name, plus(before[name]!, change, 0.1)]),
      );
      before.w0!.values.fill(0, 5, 300); // zeros of both signs
      after.w0!.values.fill(-0, 100, 400);
      const sides = await sidesOf([
        modelFolder('base', before, undefined, {}, dtype),
        modelFolder('tuned', after, undefined, {}, other),
      ]);
      for (const pair of pairTensors(sides.base, sides.tuned).shared) {
        const measured = [];
        for (const kind of ['cpu', 'webgpu'] as const) {
          const work = openPairWorkspace({ ...createCpuBackend(), kind }, [pair]);
          const open = openPair(pair, work, sides.read);
          const sums = await measurePair(open, 0.004);
          measured.push({ sums, delta: await readDelta(deltaMatrix(open)), form: open.task.form });
          open.close();
          work.close();
        }
        expect(measured.map(({ form }) => form)).toEqual(['stored', 'weights']);
        expect({ ...measured[0], form: '' }).toEqual({ ...measured[1], form: '' });
      }
    }
  },
);
