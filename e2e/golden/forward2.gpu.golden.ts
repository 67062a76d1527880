/** Every family of golden/forward2 on the graphics device: whole, in little room, and from a cache. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Backend } from '../../src/backend/backend';
import { createGpuBackend } from '../../src/backend/gpu/gpu-backend';
import { checkFamily } from '../../src/forward/families.test.cases';

const folder = join(process.env.AMALGAM_GOLDEN!, 'golden', 'forward2');
const families = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const read = async (path: string) => new Uint8Array(readFileSync(path));

let engine: Backend;
beforeAll(async () => {
  engine = await createGpuBackend();
});
afterAll(() => engine.close());

test('there are families', () => expect(families.length).toBe(49));

test.each(families)('%s', async (name) => {
  await checkFamily(join(folder, name), read, engine);
});
