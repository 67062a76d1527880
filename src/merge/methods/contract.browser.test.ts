/** Every method on WebGPU and on typed arrays: the same bytes and the same report, whatever the numbers. */
import { afterAll, beforeAll, describe } from 'vitest';
import type { ComputeEngine } from '../../compute/engine';
import { createGpuEngine } from '../../gpu/gpu-engine';
import { engineTests } from './contract.engines.test.support';
import { methods } from './index';

let gpu: ComputeEngine;
beforeAll(async () => {
  gpu = await createGpuEngine();
});
afterAll(() => gpu.close());

describe.each(methods.map((m) => [m.id, m] as const))('%s', (_, method) => engineTests(method, () => gpu));
