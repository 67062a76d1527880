import { expect, it } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { sharedGpu } from '../../backend/kernels/kernels.test.support';
import { mergeOn, PRESETS, syntheticTensor } from './delta-pipeline.cases';

const gpu = await sharedGpu();

it('an election of 20 and 32 models: WebGPU gives the bytes of the processor', async () => {
  const preset = PRESETS.find(([name]) => name === 'ties')![1];
  for (const more of [17, 29]) {
    const tensor = syntheticTensor('F32', more);
    const expected = await mergeOn(createCpuBackend(), tensor, preset, 64);
    expect(await mergeOn(gpu, tensor, preset, 2)).toEqual(expected);
  }
});

it.each(PRESETS)('%s: WebGPU gives the bytes and statistics of the processor', async (_, preset) => {
  for (const dtype of ['F32', 'F16', 'BF16'] as const) {
    const tensor = syntheticTensor(dtype);
    const expected = await mergeOn(createCpuBackend(), tensor, preset, 64);
    for (const blocks of [2, 64]) expect(await mergeOn(gpu, tensor, preset, blocks)).toEqual(expected);
  }
});
