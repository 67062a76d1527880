import { readFileSync } from 'node:fs';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { sumsCases } from './sums.test.cases';

sumsCases(sharedGpu, async (path) => new Uint8Array(readFileSync(path)));
