import { readFile } from 'node:fs/promises';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { GOLDEN_NAMES } from '../forward/golden.test.fixture';
import { describeGoldenGrams } from './golden.test.cases';

const read = async (path: string) => new Uint8Array(await readFile(path));
describeGoldenGrams('golden Gram matrices on the processor', GOLDEN_NAMES, read, () =>
  Promise.resolve(createCpuBackend()),
);
