import { createCpuEngine } from '../cpu/cpu-engine';
import { describeGrams } from './gram.test.cases';

const open = () => Promise.resolve(createCpuEngine());
describeGrams('Gram matrices on typed arrays', open);
