/** Every family of golden/forward2 on the graphics device: whole, in little room, and from a cache. */
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Backend } from '../../src/backend/backend';
import { createGpuBackend } from '../../src/backend/gpu/gpu-backend';
import { checkFamily } from '../../src/forward/families.test.cases';

declare module 'vitest' {
  interface ProvidedContext {
    golden: { folder: string; families: string[] };
  }
}

const { folder, families } = inject('golden');
const read = async (path: string) => {
  const response = await fetch(`/@fs${path}`);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

let engine: Backend;
beforeAll(async () => {
  engine = await createGpuBackend();
});
afterAll(() => engine.close());

test('there are families', () => expect(families.length).toBe(49));

test.each(families)('%s', async (name) => {
  await checkFamily(`${folder}/${name}`, read, engine);
});
