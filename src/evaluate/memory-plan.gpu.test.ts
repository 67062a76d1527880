import '../foreign/foreign-text.test.support';
import { afterEach, expect, test, vi } from 'vitest';
import { engineTraits } from '../host/backends';
import { MEMORY_CASES, statedAndWritten } from './memory-plan.test.fixture';

afterEach(() => vi.restoreAllMocks());

test.each(MEMORY_CASES)(
  'the buffers of the graphics device stay below what was stated: %s, weights %s',
  async (recipe, weights) => {
    const held = new Map<GPUBuffer, GPUDevice>();
    let [bytes, most] = [0, 0];
    const { createBuffer, destroy: end } = GPUDevice.prototype;
    vi.spyOn(GPUDevice.prototype, 'createBuffer').mockImplementation(function made(
      this: GPUDevice,
      descriptor,
    ) {
      const buffer = createBuffer.call(this, descriptor);
      held.set(buffer, this);
      bytes += buffer.size;
      most = Math.max(most, bytes);
      return buffer;
    });
    const drop = (buffer: GPUBuffer) => {
      if (held.delete(buffer)) bytes -= buffer.size;
    };
    const { destroy } = GPUBuffer.prototype;
    vi.spyOn(GPUBuffer.prototype, 'destroy').mockImplementation(function given(this: GPUBuffer) {
      drop(this);
      return destroy.call(this);
    });
    vi.spyOn(GPUDevice.prototype, 'destroy').mockImplementation(function closed(this: GPUDevice) {
      for (const [buffer, device] of held) if (device === this) drop(buffer);
      return end.call(this);
    });
    const stated = await statedAndWritten(recipe, weights, await engineTraits('webgpu'));
    expect([most < stated.bytes, stated.bytes < 2 * most]).toEqual([true, true]);
  },
);
