import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { memoryLocks } from '../store/memory-storage';
import { followOtherTabs, takeOver, withRunLock } from './run-lock';

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('navigator', { locks: memoryLocks() });
  // by the clock of the test
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    const ends = new AbortController();
    setTimeout(() => ends.abort(), ms);
    return ends.signal;
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const request = { destination: { kind: 'downloads', name: 'merged' } } as const;
const nothing = () => undefined;

/** A merge of another tab, until `end`. */
async function elsewhere() {
  let end = nothing as () => void;
  const theirs = withRunLock(request, nothing, () => new Promise<void>((done) => (end = done)));
  await vi.advanceTimersByTimeAsync(0);
  return { end, theirs };
}

it('R39: a merge that another tab goes on with is not begun here; one that takes its time to stop is taken over', async () => {
  const { end, theirs } = await elsewhere();

  const ours = withRunLock(request, nothing, async () => 'merged');
  const refused = expect(ours).rejects.toMatchObject({ code: 'Busy' });
  await vi.advanceTimersByTimeAsync(10_000);
  await refused;

  const taken = vi.fn();
  const taking = takeOver().then(taken);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(taken).not.toHaveBeenCalled();
  end();
  await theirs;
  await taking;
  expect(await withRunLock(request, nothing, async () => 'merged')).toBe('merged');
});

it('R39: a tab that does not stop is said to', async () => {
  const { end, theirs } = await elsewhere();
  const refused = expect(takeOver()).rejects.toMatchObject({ code: 'Busy' });
  await vi.advanceTimersByTimeAsync(120_000);
  await refused;
  end();
  await theirs;
});

it('R39: the silent lock of a page that was left is not told as another tab; its end is, and one that stays', async () => {
  let letGo = nothing as () => void;
  const held = () => new Promise<void>((done) => (letGo = done));
  const told = vi.fn();
  void navigator.locks.request('amalgam-run', held);
  void followOtherTabs(told);
  await vi.advanceTimersByTimeAsync(8_000);
  expect(told).not.toHaveBeenCalled();
  letGo();
  await vi.advanceTimersByTimeAsync(2_000);
  // what it has left can be resumed now
  expect(told.mock.calls).toEqual([[null]]);
  void navigator.locks.request('amalgam-run', held);
  await vi.advanceTimersByTimeAsync(12_000);
  expect(told).toHaveBeenLastCalledWith({ name: '', progress: null });
  letGo();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(told).toHaveBeenLastCalledWith(null);
});
