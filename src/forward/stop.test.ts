import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import { stopCases } from './stop.test.cases';

stopCases(async () => createCpuBackend(openSharedWeights(0, () => () => undefined)), [2e9, 5e9]);
