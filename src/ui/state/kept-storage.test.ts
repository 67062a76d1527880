import { afterEach, expect, test, vi } from 'vitest';
import { reportProgress } from './job';
import { createStudio, type StudioWorker } from './studio';

afterEach(() => vi.unstubAllGlobals());

/** The notices after downloads of these sizes, in a browser that answers so. */
async function noticesAfter(
  sizes: number[],
  storage: { persisted: () => Promise<boolean>; persist: () => Promise<boolean> } | undefined,
): Promise<string[]> {
  vi.stubGlobal('navigator', { storage });
  const studio = createStudio({} as StudioWorker);
  for (const total of sizes) {
    reportProgress(studio, 'merge', {
      ...{ phase: 'downloading', item: '', share: 0, counted: null, rate: null, secondsLeft: null },
      bytes: { done: 0, total },
    });
  }
  await new Promise((resolve) => setImmediate(resolve));
  return studio.store.getState().notices.map(({ message }) => message);
}

test('the browser is asked once, at the first large download, and its answer is shown', async () => {
  const persist = vi.fn(async () => true);
  const persisted = async () => false;
  const kept = await noticesAfter([1e6, 300e6, 400e6], { persisted, persist });
  expect(persist).toHaveBeenCalledTimes(1);
  expect(kept).toEqual([expect.stringContaining('keeps it until you delete it')]);
  const answers = [async () => false, async () => Promise.reject(new Error('not allowed'))];
  for (const answer of answers) {
    const said = await noticesAfter([300e6], { persisted, persist: answer });
    expect(said).toEqual([expect.stringContaining('may delete it when the disk runs short')]);
  }
});

test('nothing is asked for little, of what is kept already, or where there is nobody to ask', async () => {
  const persist = vi.fn(async () => true);
  expect(await noticesAfter([1e6], { persisted: async () => false, persist })).toEqual([]);
  expect(await noticesAfter([300e6], { persisted: async () => true, persist })).toEqual([]);
  expect(await noticesAfter([300e6], undefined)).toEqual([]);
  expect(persist).not.toHaveBeenCalled();
});
