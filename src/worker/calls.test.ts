import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

// a worker finds out once whether it has storage
vi.resetModules();
const { createCalls } = await import('./calls');

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
