import type * as Comlink from 'comlink';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { HubWait } from '../reports/push';
import type { RemoteWorker } from './remote';

// a worker finds out once whether it has storage
vi.resetModules();
const { createCalls } = await import('./calls');
const { callRemote, serveCalls } = await import('./remote');

beforeEach(() => {
  // as in a private window of Firefox: the interface is there and refuses
  const refuse = () => Promise.reject(new DOMException('Security error', 'SecurityError'));
  const locks = {
    request: (_: string, ...rest: unknown[]) => (rest.at(-1) as (lock: object) => unknown)({}),
  };
  vi.stubGlobal('navigator', { storage: { getDirectory: refuse }, locks, hardwareConcurrency: 2 });
});
afterEach(() => vi.unstubAllGlobals());

describe('R36: a window without storage', () => {
  test('has an engine, and says that files stay in memory', async () => {
    const info = await createCalls().info();
    expect(info.storage).toEqual({ available: true, memoryBytes: 2 ** 30 });
    expect(info.auto).toBe('cpu');
  });

  test('has nothing that was cut off', async () => {
    expect(await createCalls().interrupted()).toEqual([]);
  });
});

test.each([
  ['openHub', ['a/model']],
  ['searchHub', [{ text: 'model', limit: 1 }]],
  ['publishedRecipe', ['a/model']],
  ['openDataset', ['a/texts']],
  ['datasetColumns', ['a/texts', 'test.parquet']],
  ['hubAccount', []],
  ['pushTarget', ['a/model', { kind: 'folder', handle: {}, name: '', files: [] }]],
])('R30: %s ends in the midst of a wait that the hub asks for', async (name, args) => {
  const ask = vi.fn(async () => new Response('', { status: 429 }));
  vi.stubGlobal('fetch', ask);
  const calls = createCalls();
  await calls.setHub({ token: 'hf_reader' });
  let waits: HubWait[] = [];
  const begun = new Promise<void>((resolve) => {
    void calls.hubWaits((now) => {
      waits = now;
      if (now.length > 0) resolve();
    });
  });
  const stop = new AbortController();
  const remote = serveCalls(calls) as unknown as Comlink.Remote<RemoteWorker>;
  const { outcome } = callRemote(remote, name, [...args, stop.signal], () => undefined);
  await Promise.race([begun, outcome]);
  expect(waits).toHaveLength(1);
  stop.abort();
  expect(await outcome).toMatchObject({ error: { code: 'Canceled' } });
  expect(waits).toEqual([]);
  expect(ask).toHaveBeenCalledTimes(1);
});
