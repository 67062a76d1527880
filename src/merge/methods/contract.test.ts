/** Promises of every method, tested from its own file and its oracle alone: see docs/adding-a-method.md. */
import { describe, expect, it } from 'vitest';
import { magmax } from '../../../docs/example/magmax';
import * as judge from '../../../docs/example/magmax.oracle';
import type { MergeMethod } from '../method';
import { judged } from './contract.cases';
import { contractTests } from './contract.test.support';
import { methods } from './index';

it('every method in this folder is in the index', () => {
  const files = import.meta.glob<Record<string, unknown>>(['./*.ts', '!./*.test.*', '!./*.test.support.ts'], {
    eager: true,
  });
  const declared = Object.values(files).flatMap((file) =>
    Object.values(file).flatMap((value) =>
      Object(value).compute && Object(value).modelParameters ? [(value as MergeMethod).id] : [],
    ),
  );
  const ids = methods.map(({ id }) => id);
  expect(
    declared.filter((id) => !ids.includes(id)),
    'not in src/merge/methods/index.ts',
  ).toEqual([]);
  expect(declared.sort()).toEqual([...ids].sort());
  expect(judged.sort()).toEqual(methods.map((m) => m.id).sort());
});

describe.each(methods.map((m) => [m.id, m] as const))('%s', (_, method) => contractTests(method));

describe('the worked example of docs/adding-a-method.md', () => contractTests(magmax, judge));
