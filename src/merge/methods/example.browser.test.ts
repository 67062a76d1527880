/** The worked example of docs/adding-a-method.md on both engines. */
import { afterAll, beforeAll } from 'vitest';
import { magmax } from '../../../docs/example/magmax';
import type { ComputeEngine } from '../../compute/engine';
import { createGpuEngine } from '../../gpu/gpu-engine';
import { engineTests } from './contract.engines.test.support';

let gpu: ComputeEngine;
beforeAll(async () => {
  gpu = await createGpuEngine();
});
afterAll(() => gpu.close());

engineTests(magmax, () => gpu);
