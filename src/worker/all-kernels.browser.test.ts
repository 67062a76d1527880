/** That a browser's WebGPU takes what Dawn in Node was tested with (`npx vitest run --project gpu`): every kernel, and a merge. */

import * as Comlink from 'comlink';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Backend } from '../backend/backend';
import { requestDevice } from '../backend/gpu/adapter';
import { createGpuBackend } from '../backend/gpu/gpu-backend';
import { wgslOf } from '../backend/gpu/wgsl';
import { methodById } from '../merge/methods';
import { engineTests } from '../merge/methods/contract.engines.test.support';
import { startWorker } from '../platform';
import { allKernels } from './all-kernels';
import type { SharedWeightsRig } from './shared-weights.test.worker';
import rigUrl from './shared-weights.test.worker?worker&url';

test('the WGSL of every kernel is taken', async () => {
  const { device } = await requestDevice();
  const kernels = [...allKernels.values()].filter(({ wgsl }) => wgsl !== '');
  const refused = kernels.map(async (kernel) => {
    const { messages } = await device.createShaderModule({ code: wgslOf(kernel) }).getCompilationInfo();
    return messages.flatMap(({ type, message }) => (type === 'error' ? [`${kernel.id}: ${message}`] : []));
  });
  expect((await Promise.all(refused)).flat()).toEqual([]);
  expect(kernels.length).toBeGreaterThan(80);
  device.destroy();
});

describe('ties', () => {
  let gpu: Backend;
  beforeAll(async () => {
    gpu = await createGpuBackend();
  });
  afterAll(() => gpu.close());
  engineTests(methodById.get('ties')!, () => gpu);
});

test('threads of an isolated page compute products together, with the bits of one', async () => {
  expect(crossOriginIsolated).toBe(true);
  const worker = startWorker(rigUrl, 'shared weights');
  const { isShared, started, different } = await Comlink.wrap<SharedWeightsRig>(worker).products(50);
  worker.terminate();
  expect({ isShared, different }).toEqual({ isShared: true, different: 1 });
  expect(started).toBe(Math.min(8, navigator.hardwareConcurrency) - 1);
});
