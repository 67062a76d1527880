import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { checkFamily, FAMILY_FOLDER, FAMILY_NAMES } from './families.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));

const engine = await sharedGpu();

test.each(FAMILY_NAMES)(
  '%s on the graphics device: whole, in little room, and from a cache',
  async (name) => {
    await checkFamily(`${FAMILY_FOLDER}/${name}`, read, engine);
  },
);
