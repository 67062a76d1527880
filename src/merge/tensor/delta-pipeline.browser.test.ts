import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ComputeEngine } from '../../compute/engine';
import { createCpuEngine } from '../../cpu/cpu-engine';
import { createGpuEngine } from '../../gpu/gpu-engine';
import { mergeOn, PRESETS, syntheticTensor } from './delta-pipeline.cases';

let gpu: ComputeEngine;
beforeAll(async () => {
  gpu = await createGpuEngine();
});
afterAll(() => gpu.close());

it.each(PRESETS)('%s: WebGPU gives the bytes and statistics of the typed arrays', async (_, preset) => {
  for (const dtype of ['F32', 'F16', 'BF16'] as const) {
    const tensor = syntheticTensor(dtype);
    const expected = await mergeOn(createCpuEngine(), tensor, preset, 64);
    for (const blocks of [2, 64]) expect(await mergeOn(gpu, tensor, preset, blocks)).toEqual(expected);
  }
});
