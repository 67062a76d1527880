import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { beginJob, cancelJob, reportProgress, restartStep } from './job';
import { tensorProgress } from './job-state';
import { createStudio, editSlice, type Studio, type StudioWorker } from './studio';

let studio: Studio;
let end: () => void;
const ping = vi.fn();
const cancel = vi.fn();
const restart = vi.fn();

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('navigator', {});
  vi.stubGlobal('addEventListener', () => undefined);
  vi.stubGlobal('removeEventListener', () => undefined);
  ping.mockReset().mockResolvedValue(undefined);
  cancel.mockReset().mockResolvedValue(undefined);
  restart.mockReset().mockResolvedValue({ signedOut: false });
  studio = createStudio({ ping, cancel, restart } as unknown as StudioWorker);
  end = beginJob(studio, 'merge');
});
afterEach(() => {
  end();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const seconds = (n: number) => vi.advanceTimersByTimeAsync(n * 1000);
const stalled = () => studio.store.getState().job?.stalled;
const progress = tensorProgress({
  phase: 'merging',
  item: 'a',
  bytes: 2,
  bytesDone: 1,
  tensors: 2,
  tensorsDone: 1,
  bytesPerSecond: 0,
  secondsLeft: null,
} as Parameters<typeof tensorProgress>[0]);

test('R64: a job of which nothing is heard is said to stand still, until something is heard', async () => {
  await seconds(25);
  expect(stalled()).toBeUndefined();
  await seconds(10);
  expect(stalled()).toEqual({ seconds: 35, answers: true });
  reportProgress(studio, 'merge', progress);
  expect(stalled()).toBeUndefined();
  await seconds(25);
  expect(stalled()).toBeUndefined();
});

test('an engine that does not answer is told from a step that is slow', async () => {
  ping.mockReturnValue(new Promise(() => undefined));
  await seconds(35);
  expect(stalled()).toEqual({ seconds: 35, answers: false });
});

test('a wait for the hub is no standing still: the page counts it down', async () => {
  studio.store.setState({
    hubWaits: [{ reason: 'rate-limit', until: 0, name: 'a', host: 'b', announced: true }],
  });
  await seconds(60);
  expect(stalled()).toBeUndefined();
});

test('restarting a step begins it again in a new engine', async () => {
  await seconds(35);
  await restartStep(studio);
  expect(restart).toHaveBeenCalledExactlyOnceWith('again');
  expect(stalled()).toBeUndefined();
});

test('what does not stop when it is canceled is ended with the engine', async () => {
  cancel.mockReturnValue(new Promise(() => undefined));
  void cancelJob(studio);
  await seconds(0.9);
  expect(restart).not.toHaveBeenCalled();
  await seconds(1);
  expect(restart).toHaveBeenCalledExactlyOnceWith('cancel');
});

test('what stops in time is not', async () => {
  await cancelJob(studio);
  end();
  await seconds(10);
  expect(restart).not.toHaveBeenCalled();
});

test('a sign-in that is lost with the engine is said', async () => {
  restart.mockResolvedValue({ signedOut: true });
  editSlice(studio, 'hub', { hasToken: true, signedInAs: 'me' });
  await restartStep(studio);
  expect(studio.store.getState().hub).toMatchObject({ hasToken: false, signedInAs: null });
  expect(studio.store.getState().notices[0]?.message).toMatch('signed out');
});
