import { createCpuEngine } from '../cpu/cpu-engine';
import { describeCompensation } from './compensate.test.cases';
import { describeFactors } from './factor.test.cases';
import { describeGrams } from './gram.test.cases';
import { describeMasks } from './keep.test.cases';
import { describeSolve } from './solve.test.cases';

const open = () => Promise.resolve(createCpuEngine());
describeGrams('Gram matrices on typed arrays', open);
describeMasks('keep-masks on typed arrays', open);
describeFactors('factors on typed arrays', open);
describeSolve('the Gram merge on typed arrays', open);
describeCompensation('compensation on typed arrays', open);
