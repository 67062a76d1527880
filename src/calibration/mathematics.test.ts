import { readFileSync } from 'node:fs';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { GOLDEN_NAMES } from '../forward/golden.test.fixture';
import { describeCompensation } from './compensation.test.cases';
import { describeFactors } from './factor.test.cases';
import { describeGoldenGrams } from './golden.test.cases';
import { describeGrams } from './gram.test.cases';
import { describeSolve } from './gram-merge.test.cases';
import { describeMasks } from './keep-masks.test.cases';

const engine = Promise.resolve(createCpuBackend());
const engineOf = () => engine;
describeGrams('Gram matrices on the processor', engineOf);
describeMasks('keep-masks on the processor', engineOf);
describeFactors('factors on the processor', engineOf);
describeSolve('the Gram merge on the processor', engineOf);
describeCompensation('compensation on the processor', engineOf);

const read = async (path: string) => new Uint8Array(readFileSync(path));
describeGoldenGrams('golden Gram matrices on the processor', GOLDEN_NAMES, read, async () =>
  createCpuBackend(),
);
