/** Every family of golden/forward2 on the processor: whole, in little room, and from a cache; and mistakes that they must detect. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { type CheckedType, seenShare } from '../../docs/families-table';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { FAMILY_MISTAKES } from '../../src/forward/families.mistakes.test.cases';
import { checkFamily, FAMILY_LIMITS, loadFamily, strayWhole } from '../../src/forward/families.test.cases';
import { ROOMY } from '../../src/forward/runner.test.cases';

const folder = join(process.env.AMALGAM_GOLDEN!, 'golden', 'forward2');
const families = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const read = async (path: string) => new Uint8Array(readFileSync(path));

test('there are families', () => expect(families.length).toBe(49));

/** By model type what a fixture shows whose check has passed. */
const passed: Record<string, CheckedType> = {};

test.each(families)('%s', async (name) => {
  const engine = createCpuBackend();
  await checkFamily(join(folder, name), read, engine);
  engine.close();
  const { architecture } = await loadFamily(join(folder, name), read);
  passed[architecture.modelType] = { seen: Number(seenShare(architecture).toFixed(4)) };
});

test('what passes is what docs/forward.md is written from (-u writes it)', async () => {
  const types = Object.keys(passed).sort();
  const text = JSON.stringify(Object.fromEntries(types.map((type) => [type, passed[type]])), null, 2);
  await expect(`${text}\n`).toMatchFileSnapshot('../fixtures/golden/checked.json');
});

test.each(FAMILY_MISTAKES.filter(([, family]) => families.includes(family)))(
  '%s: %s',
  async (_, family, change) => {
    const golden = await loadFamily(join(folder, family), read);
    const engine = createCpuBackend();
    const { nll } = await strayWhole(golden, engine, ROOMY, change(golden.architecture), false);
    engine.close();
    expect(nll).toBeGreaterThan(5 * FAMILY_LIMITS.nll);
  },
);
