import { performance } from 'node:perf_hooks';
import { expect, test } from 'vitest';

/** Long enough to be waited for. */
const BUSY = `
@group(0) @binding(0) var<storage, read_write> sums: array<u32>;
@compute @workgroup_size(1) fn main() {
  for (var i = 0u; i < 20000000u; i++) { sums[0] = sums[0] * 3u + i; }
}`;

test('while the device computes this thread rests between two looks at it', async () => {
  const device = await (await navigator.gpu.requestAdapter())!.requestDevice();
  const module = device.createShaderModule({ code: BUSY });
  const pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module } });
  const buffer = device.createBuffer({ size: 4, usage: GPUBufferUsage.STORAGE });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  const entries = [{ binding: 0, resource: { buffer } }];
  pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
  pass.dispatchWorkgroups(1);
  pass.end();
  const turns = () => performance.nodeTiming.uvMetricsInfo.loopCount;
  const [before, begun] = [turns(), performance.now()];
  device.queue.submit([encoder.finish()]);
  await device.queue.onSubmittedWorkDone();
  const ms = performance.now() - begun;
  expect(ms).toBeGreaterThan(20);
  expect((turns() - before) / ms).toBeLessThan(6);
  device.destroy();
});
