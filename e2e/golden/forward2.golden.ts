/** Every family of golden/forward2 on the processor: whole, in little room, and from a cache. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { checkFamily } from '../../src/forward/families.test.cases';

const folder = join(process.env.AMALGAM_GOLDEN!, 'golden', 'forward2');
const families = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
const read = async (path: string) => new Uint8Array(readFileSync(path));

test('there are families', () => expect(families.length).toBeGreaterThan(40));

test.each(families.map(({ name }) => name))('%s', async (name) => {
  const engine = createCpuBackend();
  await checkFamily(join(folder, name), read, engine);
  engine.close();
});
