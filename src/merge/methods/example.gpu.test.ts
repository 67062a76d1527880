/** The worked example of docs/adding-a-method.md on both engines. */
import { afterAll, beforeAll } from 'vitest';
import { magmax } from '../../../docs/example/magmax';
import type { Backend } from '../../backend/backend';
import { createGpuBackend } from '../../backend/gpu/gpu-backend';
import { engineTests } from './contract.engines.test.support';

let gpu: Backend;
beforeAll(async () => {
  gpu = await createGpuBackend();
});
afterAll(() => gpu.close());

engineTests(magmax, () => gpu);
