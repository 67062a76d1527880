/** Promises of every method, tested from its own file and its oracle alone: see docs/adding-a-method.md. */
import { describe, expect, it } from 'vitest';
import { contractTests } from './contract.test.support';
import { methods } from './index';
import type { Oracle } from './oracle';

const oracles = import.meta.glob<{ oracle: Oracle }>('./*.oracle.ts', { eager: true });

it('every method in this folder is in the index', () => {
  const files = import.meta.glob<Record<string, unknown>>(['./*.ts', '!./*.test.*', '!./*.test.support.ts'], {
    eager: true,
  });
  const declared = Object.values(files).flatMap((file) =>
    Object.values(file).filter((value) => Object(value).compute && Object(value).contract),
  );
  expect(new Set(declared)).toEqual(new Set(methods));
  expect(
    Object.keys(oracles)
      .map((path) => path.slice(2, -10))
      .sort(),
  ).toEqual(methods.map((m) => m.id).sort());
});

describe.each(methods.map((m) => [m.id, m] as const))('%s', (id, method) => {
  const found = oracles[`./${id}.oracle.ts`];
  if (!found) throw new Error(`${id} brings no oracle: add src/merge/methods/${id}.oracle.ts`);
  contractTests(method, found.oracle);
});
