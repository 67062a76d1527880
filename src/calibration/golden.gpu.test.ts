import { readFileSync } from 'node:fs';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { GOLDEN_NAMES } from '../forward/golden.test.fixture';
import { describeGoldenGrams } from './golden.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));
describeGoldenGrams('golden Gram matrices, webgpu', GOLDEN_NAMES, read, sharedGpu);
