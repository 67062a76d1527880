import { afterEach, expect, test, vi } from 'vitest';
import { createCpuBackend, MAX_BUFFER_BYTES } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import * as backends from '../host/backends';
import { MEMORY_CASES, statedAndWritten } from './memory-plan.test.fixture';

afterEach(() => vi.restoreAllMocks());

test.each(MEMORY_CASES)(
  'the memories of the processor stay below what was stated: %s, weights %s',
  async (recipe, weights) => {
    const memories: WebAssembly.Memory[] = [];
    const { Memory } = WebAssembly;
    vi.spyOn(WebAssembly, 'Memory').mockImplementation(function made(descriptor) {
      const memory = new Memory(descriptor);
      memories.push(memory);
      return memory;
    });
    vi.spyOn(backends, 'openEvaluationBackends').mockImplementation(async () => [
      createCpuBackend(openSharedWeights(0, () => () => undefined, { residentBytes: 2 ** 31 })),
    ]);
    const traits = {
      kind: 'cpu',
      adapter: 'WebAssembly',
      software: true,
      maxBufferBytes: MAX_BUFFER_BYTES,
    } as const;
    const stated = await statedAndWritten(recipe, weights, {
      ...traits,
      hasWeights: true,
      residentBytes: 2 ** 31,
    });
    expect(memories.length).toBe(6);
    const held = memories.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
    expect([held < stated.bytes, stated.bytes < 2 * held]).toEqual([true, true]);
  },
);
