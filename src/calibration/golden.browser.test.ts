import { createGpuBackend } from '../backend/gpu/gpu-backend';
import { GOLDEN_NAMES } from '../forward/golden.test.fixture';
import { describeGoldenGrams } from './golden.test.cases';

const read = async (path: string) => {
  const response = await fetch(`/${path}`);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};
describeGoldenGrams('golden Gram matrices, webgpu', GOLDEN_NAMES, read, createGpuBackend);
