/** What every method promises, tested from its own file and its oracle alone: see docs/adding-a-method.md. */
import { describe, vi } from 'vitest';
import { contractTests } from './contract.test.support';
import { methods } from './index';
import type { Oracle } from './oracle';

vi.setConfig({ testTimeout: 60_000 });

const oracles = import.meta.glob<{ oracle: Oracle }>('./*.oracle.ts', { eager: true });

describe.each(methods.map((m) => [m.id, m] as const))('%s', (id, method) => {
  const found = oracles[`./${id}.oracle.ts`];
  if (!found) throw new Error(`${id} brings no oracle: add src/merge/methods/${id}.oracle.ts`);
  contractTests(method, found.oracle);
});
