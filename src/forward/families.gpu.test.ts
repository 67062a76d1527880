import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, test } from 'vitest';
import type { Backend } from '../backend/backend';
import { createGpuBackend } from '../backend/gpu/gpu-backend';
import { checkFamily, FAMILY_FOLDER, FAMILY_NAMES } from './families.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));

let engine: Backend;
beforeAll(async () => {
  engine = await createGpuBackend();
});
afterAll(() => engine.close());

test.each(FAMILY_NAMES)(
  '%s on the graphics device: whole, in little room, and from a cache',
  async (name) => {
    await checkFamily(`${FAMILY_FOLDER}/${name}`, read, engine);
  },
);
