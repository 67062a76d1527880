/**
 * How long *Stop* takes on a software graphics device and on a thread of the processor: layers of real shapes whose weights are
 * zeros, stopped at places all over a text and a measured text. For docs/benchmarks.md.
 *
 *   npx vitest run --config e2e/bench/vitest.bench.config.ts stop
 */
import { loadavg } from 'node:os';
import process from 'node:process';
import { test } from 'vitest';
import '../../src/backend/gpu/node-webgpu.test.support';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { createGpuBackend } from '../../src/backend/gpu/gpu-backend';
import { generate } from '../../src/evaluate/generation';
import { evaluate } from '../../src/evaluate/perplexity';
import { parseModelConfig } from '../../src/formats/model-config';
import { openRunner, type Runner } from '../../src/forward/runner';
import type { WeightSource } from '../../src/forward/weight-source';
import { resolveArchitecture } from '../../src/models/resolution';
import { configOf, LLAMA_1B, QWEN_05B, type Shape, tensorsOf } from './checkpoints';

const STOPS = 12;
const LAYERS = 3;
const PROMPT = 64;

function zeros(shape: Shape): WeightSource {
  const tensors = tensorsOf(shape).map(
    ([name, of]) => [name, { dtype: 'BF16' as const, shape: of }] as const,
  );
  return { tensors: new Map(tensors), read: async (_, begin, end) => new Uint8Array(end - begin) };
}

const ids = (count: number) => Array.from({ length: count }, (_, i) => i * 7);

const WORK: Record<string, (runner: Runner, signal: AbortSignal) => Promise<unknown>> = {
  'a text': (runner, signal) =>
    generate(runner, [ids(PROMPT)], {
      maxTokens: 8,
      sampling: { temperature: 0, topP: 1, seed: 0 },
      signal,
    }),
  'a measured text': (runner, signal) =>
    evaluate(runner, { ids: ids(PROMPT), bos: null }, { window: PROMPT, stride: PROMPT / 2 }, { signal }),
};

test.each([QWEN_05B, LLAMA_1B])('$name', async (whole) => {
  const shape = { ...whole, layers: LAYERS };
  const architecture = resolveArchitecture(parseModelConfig(JSON.stringify(configOf(shape)), 'config.json'));
  for (const engine of [createCpuBackend(), await createGpuBackend()]) {
    const runner = openRunner(engine, architecture, zeros(shape), { residentBytes: 2 ** 33 });
    for (const [name, work] of Object.entries(WORK)) {
      // the first round reads the weights
      await work(runner, new AbortController().signal);
      const begun = performance.now();
      await work(runner, new AbortController().signal);
      const seconds = (performance.now() - begun) / 1000;
      const late: number[] = [];
      for (let stop = 0; stop < STOPS; stop++) {
        const controller = new AbortController();
        const due = (1000 * seconds * (stop + 0.5)) / STOPS;
        // a thread that computes hears the timer late, as it hears whoever stops it
        const asked = performance.now() + due;
        const timer = setTimeout(() => controller.abort(), due);
        await work(runner, controller.signal).then(
          () => clearTimeout(timer),
          () => late.push(performance.now() - asked),
        );
      }
      late.sort((a, b) => a - b);
      const [median, most] = [late[late.length >> 1], late.at(-1)].map((one) => one?.toFixed(0));
      const on = `${shape.name}, ${LAYERS} layers, ${engine.adapter}, load ${loadavg()[0]!.toFixed(1)}`;
      const stopped = `stopped ${late.length} times within ${most} ms (median ${median})`;
      process.stdout.write(`${on} · ${name} of ${seconds.toFixed(1)} s: ${stopped}\n`);
    }
    runner.close();
    engine.close();
  }
});
