import { readFileSync } from 'node:fs';
import { createGpuBackend } from '../backend/gpu/gpu-backend';
import { GOLDEN_NAMES } from '../forward/golden.test.fixture';
import { describeGoldenGrams } from './golden.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));
describeGoldenGrams('golden Gram matrices, webgpu', GOLDEN_NAMES, read, createGpuBackend);
