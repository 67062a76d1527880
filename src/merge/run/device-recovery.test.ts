import { expect, test } from 'vitest';
import type { Backend } from '../../backend/backend';
import { AmalgamError, type ErrorCode } from '../../errors';
import { deviceRecovery } from './run-workspace';

const MINUTE = 60_000;
const TILE = 2 ** 22;
const failure = (code: ErrorCode) => new AmalgamError(code, 'It failed.', 'Do this.');
const fresh = {} as Backend;

function recovery(reopen: () => Promise<Backend> = async () => fresh) {
  const clock = { now: 0 };
  const notes: string[] = [];
  const replaced: Backend[] = [];
  const recover = deviceRecovery({
    reopen,
    replace: (engine) => replaced.push(engine),
    tell: (note) => notes.push(note),
    now: () => clock.now,
  });
  return { recover, clock, notes, replaced };
}

test('R41: a lost device is replaced once in two minutes, with half the tile, and it is said', async () => {
  const { recover, clock, notes, replaced } = recovery();
  expect(await recover(failure('GpuLost'), TILE)).toEqual({ engine: fresh, tileElements: TILE / 2 });
  clock.now += 2 * MINUTE;
  expect(await recover(failure('GpuLost'), TILE)).toEqual({ engine: fresh, tileElements: TILE / 2 });
  expect(replaced).toHaveLength(2);
  expect(notes[0]).toContain('half the tile');
});

test('R42: twice in two minutes, or without another adapter, the person is told to reload', async () => {
  const { recover, clock } = recovery();
  await recover(failure('GpuLost'), TILE);
  clock.now += 2 * MINUTE - 1;
  await expect(recover(failure('GpuLost'), TILE)).rejects.toMatchObject({
    code: 'GpuLost',
    hint: expect.stringContaining('Reload the page and continue'),
  });
  const gone = recovery(() => Promise.reject(failure('NoWebGpu')));
  await expect(gone.recover(failure('GpuLost'), TILE)).rejects.toMatchObject({
    code: 'GpuLost',
    hint: expect.stringContaining('Reload the page and continue'),
  });
});

test('R45: out of memory halves the tile down to 1 MiB, then stops', async () => {
  const { recover } = recovery();
  const tiles: number[] = [];
  let tile = TILE;
  for (;;) {
    try {
      tile = (await recover(failure('GpuOutOfMemory'), tile)).tileElements;
      tiles.push(tile * 4);
    } catch (thrown) {
      expect(thrown).toMatchObject({ code: 'GpuOutOfMemory' });
      break;
    }
  }
  expect(tiles).toEqual([8, 4, 2, 1].map((mib) => mib * 2 ** 20));
});

test('R44: what did not run is run again once', async () => {
  const { recover } = recovery();
  expect(await recover(failure('GpuUnverified'), TILE)).toEqual({ engine: fresh, tileElements: TILE });
  await expect(recover(failure('GpuUnverified'), TILE)).rejects.toMatchObject({ code: 'GpuUnverified' });
});

test('R43: anything else is thrown as it is', async () => {
  const { recover, replaced } = recovery();
  for (const code of ['GpuCompile', 'GpuValidation', 'NonFinite', 'StorageFull'] as const) {
    const thrown = failure(code);
    await expect(recover(thrown, TILE)).rejects.toBe(thrown);
  }
  await expect(recover(new TypeError('a fault'), TILE)).rejects.toThrow('a fault');
  expect(replaced).toEqual([]);
});
