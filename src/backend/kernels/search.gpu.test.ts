/** The kernels that look for a threshold in a window of keys, on both engines over the same inputs. */
import { expect, it } from 'vitest';
import type { Backend } from '../backend';
import { createCpuBackend } from '../cpu/cpu-backend';
import { BLOCK, blockCount, type Kernel } from '../kernel';
import { bytesAfter, floats, sameOnBoth, sharedGpu } from './kernels.test.support';
import { countWindow, sampleKeys, WINDOW_COUNTS } from './search';

const SIZES = [1, 3, 7, 63, 255, 4096, 4097, 33_001];

const gpu = await sharedGpu();
const cpu = createCpuBackend();

it.each(SIZES)('%i elements: the same sample', async (n) => {
  await sameOnBoth(() => [cpu, gpu])(
    sampleKeys as Kernel,
    { values: floats(n + 1, 45), keys: new Uint32Array(Math.ceil((BLOCK + n) / 13)) },
    { elements: n, slot: 1, first: BLOCK, step: 13, out: 0 },
  );
});

/** Counts and keys of each block in a window, the keys sorted: their order is up to the engine. */
async function counted(engine: Backend, n: number, lo: number, hi: number, room: number) {
  const blocks = blockCount(n);
  const contents = {
    values: floats(n + 1, 46),
    counts: new Uint32Array(blocks * WINDOW_COUNTS),
    list: new Uint32Array(n + 2),
  };
  const params = { elements: n, slot: 1, lo, hi, out: 0, base: 1, room };
  const { counts, list } = await bytesAfter(engine, countWindow as Kernel, contents, params);
  const perBlock = Array.from({ length: blocks }, (_, b) => {
    const [above, highest, lowest, place, between] = counts!.slice(b * WINDOW_COUNTS);
    return { above, highest, lowest, keys: list!.slice(2 + place!, 2 + place! + between!).sort() };
  });
  return { between: list![1], perBlock, behind: list!.slice(2 + room) };
}

it.each(SIZES)('%i elements: the same counts and the same keys in the window', async (n) => {
  for (const [lo, hi] of [
    [0x3c800000, 0x3d800000],
    [0x3d000000, 0x3d000000],
    [0, 0x7fffffff],
  ] as const) {
    expect(await counted(gpu, n, lo, hi, n)).toEqual(await counted(cpu, n, lo, hi, n));
  }
});

it('counts what it has no room for', async () => {
  const [on, off] = [
    await counted(cpu, 4096, 0, 0x7fffffff, 100),
    await counted(gpu, 4096, 0, 0x7fffffff, 100),
  ];
  expect(off.between).toBe(on.between);
  expect(off.between).toBeGreaterThan(100);
  expect(off.behind.every((word) => word === 0)).toBe(true);
});
