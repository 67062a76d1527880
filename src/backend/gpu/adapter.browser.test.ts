import { expect, test } from 'vitest';

// A suite that quietly skips the GPU proves nothing: without an adapter this fails, and so does the whole run.
test('the test browser has a WebGPU adapter', async () => {
  const adapter = await navigator.gpu.requestAdapter();
  expect(adapter).not.toBeNull();
  const device = await adapter?.requestDevice();
  expect(device?.limits.maxStorageBufferBindingSize).toBeGreaterThanOrEqual(128 * 2 ** 20);
  device?.destroy();
});
