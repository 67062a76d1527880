import { readFileSync } from 'node:fs';
import { expect, it, test } from 'vitest';
import { type CheckedType, checkedType, seenShare, withFamilies } from '../../docs/families-table';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseModelConfig } from '../formats/model-config';
import { families } from '../models/families';
import { resolveArchitecture } from '../models/resolution';
import {
  checkFamily,
  ENCODER_FOLDER,
  ENCODER_NAMES,
  FAMILY_FOLDER,
  FAMILY_NAMES,
} from './families.test.cases';
import { GOLDEN_FOLDER, GOLDEN_NAMES } from './golden.test.fixture';

const read = async (path: string) => new Uint8Array(readFileSync(path));
/** Those that only `npm run check:golden -- FOLDER forward2` checks: it writes and compares the file. */
const golden = JSON.parse(readFileSync('e2e/fixtures/golden/checked.json', 'utf8')) as Record<
  string,
  CheckedType
>;

/** Model types that the repository's fixtures cover, each checked here, in engines.test.ts or in src/evaluate/masked.test.ts. */
function checkedTypes(): Map<string, CheckedType> {
  const checked = new Map(Object.entries(golden));
  const folders = [
    ...GOLDEN_NAMES.map((name) => `${GOLDEN_FOLDER}/${name}`),
    ...FAMILY_NAMES.map((name) => `${FAMILY_FOLDER}/${name}`),
    ...ENCODER_NAMES.map((name) => `${ENCODER_FOLDER}/${name}`),
  ];
  for (const folder of folders) {
    const config = parseModelConfig(readFileSync(`${folder}/config.json`, 'utf8'), 'config.json');
    if (!checked.has(config.modelType!)) {
      checked.set(config.modelType!, { seen: seenShare(resolveArchitecture(config, { masked: true })) });
    }
  }
  return checked;
}

test.each(GOLDEN_NAMES)('%s: whole, in little room, and from a cache', async (name) => {
  const engine = createCpuBackend();
  await checkFamily(`${GOLDEN_FOLDER}/${name}`, read, engine);
  engine.close();
});

it('docs/forward.md says what runs and is checked (npm run docs:families writes it)', () => {
  const page = readFileSync('docs/forward.md', 'utf8');
  expect(withFamilies(page, checkedTypes())).toBe(page);
});

it('every type that is said to run has a fixture', () => {
  const checked = checkedTypes();
  const wired = families.flatMap(({ modelTypes }) =>
    Object.entries(modelTypes).flatMap(([type, { wiring }]) => (wiring ? [type] : [])),
  );
  expect(wired.filter((type) => !checkedType(type, checked))).toEqual([]);
});
