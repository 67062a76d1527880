import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSession } from './session';

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
  test('has an engine, which says so', async () => {
    const facts = await createSession().facts();
    expect(facts.storage).toMatchObject({ available: false, why: expect.stringContaining('storage') });
    expect(facts.auto).toBe('cpu');
  });

  test('has nothing that was cut off', async () => {
    expect(await createSession().interrupted()).toEqual([]);
  });
});
