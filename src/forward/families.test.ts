import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { checkFamily, FAMILY_FOLDER, FAMILY_NAMES } from './families.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));

test.each(FAMILY_NAMES)('%s: whole, in little room, and from a cache', async (name) => {
  const engine = createCpuBackend();
  await checkFamily(`${FAMILY_FOLDER}/${name}`, read, engine);
  engine.close();
});
