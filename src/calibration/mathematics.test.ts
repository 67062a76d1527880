import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { describeCompensation } from './compensate.test.cases';
import { describeFactors } from './factor.test.cases';
import { describeGrams } from './gram.test.cases';
import { describeMasks } from './keep.test.cases';
import { describeSolve } from './solve.test.cases';

const engine = Promise.resolve(createCpuBackend());
const engineOf = () => engine;
describeGrams('Gram matrices on typed arrays', engineOf);
describeMasks('keep-masks on typed arrays', engineOf);
describeFactors('factors on typed arrays', engineOf);
describeSolve('the Gram merge on typed arrays', engineOf);
describeCompensation('compensation on typed arrays', engineOf);
