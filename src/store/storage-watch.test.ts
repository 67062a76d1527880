import { expect, test, vi } from 'vitest';
import { watchStorage } from '../worker/client';
import { fakeStorage } from './opfs.test.fake';

test('R37: storage that is cleared while a job runs is noticed once; an ended watch says nothing', async () => {
  vi.useFakeTimers();
  try {
    const storage = fakeStorage();
    vi.stubGlobal('navigator', storage.navigator);
    const cleared = vi.fn();
    const ended = vi.fn();
    watchStorage(cleared);
    const end = watchStorage(ended);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(cleared).not.toHaveBeenCalled();
    end();
    storage.root.entries.clear();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(cleared).toHaveBeenCalledOnce();
    expect(ended).not.toHaveBeenCalled();
  } finally {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  }
});

test('R36: without storage there is nothing to watch', async () => {
  vi.stubGlobal('navigator', {});
  expect(() => watchStorage(() => {})()).not.toThrow();
  vi.unstubAllGlobals();
});
