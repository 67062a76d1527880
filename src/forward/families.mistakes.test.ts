import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { FAMILY_MISTAKES } from './families.mistakes.test.cases';
import { FAMILY_FOLDER, FAMILY_LIMITS, FAMILY_NAMES, loadFamily, strayWhole } from './families.test.cases';
import { ROOMY } from './runner.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));
/** Those of the other fixtures: e2e/golden/forward2.golden.ts. */
const told = FAMILY_MISTAKES.filter(([, family]) => (FAMILY_NAMES as readonly string[]).includes(family));

test.each(told)('%s: %s', async (_, family, change) => {
  const golden = await loadFamily(`${FAMILY_FOLDER}/${family}`, read);
  const engine = createCpuBackend();
  const { nll } = await strayWhole(golden, engine, ROOMY, change(golden.architecture), false);
  engine.close();
  expect(nll).toBeGreaterThan(5 * FAMILY_LIMITS.nll);
});
