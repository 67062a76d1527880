import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { describeCompensation } from './compensation.test.cases';
import { describeFactors } from './factor.test.cases';
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
