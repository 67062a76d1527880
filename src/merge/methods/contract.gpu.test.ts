/** Every method on WebGPU and on the processor: the same bytes and the same report, whatever the numbers. */
import { afterAll, beforeAll, describe } from 'vitest';
import type { Backend } from '../../backend/backend';
import { createGpuBackend } from '../../backend/gpu/gpu-backend';
import { engineTests } from './contract.engines.test.support';
import { methods } from './index';

let gpu: Backend;
beforeAll(async () => {
  gpu = await createGpuBackend();
});
afterAll(() => gpu.close());

describe.each(methods.map((m) => [m.id, m] as const))('%s', (_, method) => engineTests(method, () => gpu));
