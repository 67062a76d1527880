import { readFileSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { type CountedBackend, countedBackend } from '../backend/backend';
import { createCpuBackend, MAX_BUFFER_BYTES } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import { type EngineTraits, plannedBackend } from '../backend/planned-backend';
import { loadGolden } from '../forward/golden.test.fixture';
import { openRunner } from '../forward/runner';
import { sourceOf } from '../forward/runner.test.cases';
import type { WeightSource } from '../forward/weight-source';
import * as backends from '../host/backends';
import { resolveArchitecture } from '../models/resolution';
import { memoryWords } from '../reports/evaluate';
import { GREEDY, generate } from './generation';
import { MEMORY_CASES, statedAndWritten } from './memory-plan.test.fixture';

afterEach(() => vi.restoreAllMocks());

const TRAITS: EngineTraits = {
  kind: 'cpu',
  adapter: 'WebAssembly',
  software: true,
  hasWeights: true,
  maxBufferBytes: MAX_BUFFER_BYTES,
};

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
    const stated = await statedAndWritten(recipe, weights, { ...TRAITS, residentBytes: 2 ** 31 });
    expect(memories.length).toBeGreaterThan(5);
    const held = memories.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
    const difference = /, difference [\d.]+.MB \(≈.50.% of the merged speed\),/;
    expect(difference.test(memoryWords(stated))).toBe(recipe === 'difference');
    expect([held < stated.bytes, stated.bytes < 2 * held]).toEqual([true, true]);
  },
);

const read = async (path: string) => new Uint8Array(readFileSync(path));

test.each(
  ['llama', 'gpt2', 'gemma3', 'bloom', 'opt_postnorm_proj'].flatMap((name) =>
    [0, 2 ** 30].map((residentBytes) => [name, residentBytes] as const),
  ),
)(
  '%s, room for %i bytes: on an engine that computes nothing a text takes what it takes',
  async (name, residentBytes) => {
    const { config, weights, ids } = await loadGolden(name, read);
    const architecture = resolveArchitecture(config);
    const peak = async (engine: CountedBackend, source: WeightSource) => {
      const runner = openRunner(engine, architecture, source, { residentBytes });
      await generate(runner, [ids.slice(0, 8)], { maxTokens: 3, sampling: GREEDY });
      runner.close();
      return engine.peakBytes;
    };
    const source = sourceOf(weights);
    const shared = openSharedWeights(0, () => () => undefined);
    const planned = plannedBackend(TRAITS).engine;
    const empty = {
      ...source,
      read: async (_: string, begin: number, end: number) => new Uint8Array(end - begin),
    };
    expect(await peak(planned, empty)).toBe(await peak(countedBackend(createCpuBackend(shared)), source));
  },
);
