/** The forward pass on the processor: goldens of transformers, families of architectures and the mistakes they would notice. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import { FAMILY_MISTAKES } from './families.mistakes.test.cases';
import {
  checkFamily,
  FAMILY_FOLDER,
  FAMILY_LIMITS,
  FAMILY_NAMES,
  loadFamily,
  strayWhole,
} from './families.test.cases';
import { GOLDEN_NAMES } from './golden.test.fixture';
import { describeGoldens, ROOMY, TIGHT } from './runner.test.cases';
import { stopCases } from './stop.test.cases';
import { sumsCases } from './sums.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));
const engine = async () => createCpuBackend();
const apart = async () => createCpuBackend(openSharedWeights(0, () => () => undefined));

describeGoldens('cpu engine', GOLDEN_NAMES, read, engine, ROOMY);
describeGoldens('cpu engine, weights in memories of their own', GOLDEN_NAMES, read, apart, ROOMY);
describeGoldens('cpu engine, little room, legacy config', GOLDEN_NAMES, read, engine, TIGHT, 'legacy');

sumsCases(apart, read);

stopCases(apart, [2e9, 3e9]);

test.each(FAMILY_NAMES)('%s: whole, in little room, and from a cache', async (name) => {
  const engine = createCpuBackend();
  await checkFamily(`${FAMILY_FOLDER}/${name}`, read, engine);
  engine.close();
});

/** Those of the other fixtures: e2e/golden/forward2.golden.ts. */
const told = FAMILY_MISTAKES.filter(([, family]) => (FAMILY_NAMES as readonly string[]).includes(family));

test.each(told)('%s: %s', async (_, family, change) => {
  const golden = await loadFamily(`${FAMILY_FOLDER}/${family}`, read);
  const engine = createCpuBackend();
  const { nll } = await strayWhole(golden, engine, ROOMY, change(golden.architecture), false);
  engine.close();
  expect(nll).toBeGreaterThan(5 * FAMILY_LIMITS.nll);
});
