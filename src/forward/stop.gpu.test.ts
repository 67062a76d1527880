import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { stopCases } from './stop.test.cases';

stopCases(sharedGpu, [1e9]);
