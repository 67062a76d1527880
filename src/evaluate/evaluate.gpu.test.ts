/** The sample model on the graphics device: perplexity as on the processor, greedy text as published, memory as stated. */
import { readFileSync } from 'node:fs';
import '../foreign/foreign-text.test.support';
import { afterEach, beforeAll, describe, expect, it, test, vi } from 'vitest';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { createTokenizer, type Tokenizer } from '../foreign/tokenizer';
import { parseModelConfig } from '../formats/model-config';
import { ENCODER_NAMES } from '../forward/families.test.cases';
import { type FileTensor, readTensors } from '../forward/golden.test.fixture';
import { openRunner } from '../forward/runner';
import { sourceOf } from '../forward/runner.test.cases';
import { engineTraits } from '../host/backends';
import { resolveArchitecture } from '../models/resolution';
import { checkLastStream } from './embedded.test.cases';
import { GREEDY, generate } from './generation';
import { MODELS, turned } from './live-weights.test.fixture';
import {
  checkLogLikelihoods,
  LM_EVAL_FIXTURE,
  LOG_LIKELIHOOD_LIMIT,
  type LogLikelihoodGolden,
} from './log-likelihood.test.cases';
import { checkEncoder } from './masked.test.cases';
import { MEMORY_CASES, statedAndWritten } from './memory-plan.test.fixture';
import { evaluate } from './perplexity';
import { encodeText, openSample, readText } from './sample.test.fixture';
import { generateMany } from './sampled-texts';

const file = (path: string) => new Uint8Array(readFileSync(`public/samples/${path}`));
const text = (path: string) => readFileSync(`public/samples/${path}`, 'utf8');

const gpu = await sharedGpu();

describe('the sample base on the graphics device', () => {
  let config: string;
  let tensors: Map<string, FileTensor>;
  let tokenizer: Tokenizer;
  beforeAll(async () => {
    config = text('base/config.json');
    tensors = readTensors(file('base/model.safetensors'));
    const files = { tokenizer: text('base/tokenizer.json'), hasSentencePiece: false };
    tokenizer = createTokenizer(files, 'samples/base');
  });
  const open = (engine: Backend) =>
    openRunner(engine, resolveArchitecture(parseModelConfig(config, 'config.json')), sourceOf(tensors));

  it('is as surprised by each token as on the processor', async () => {
    const story = text('texts/kitchen.eval.txt').slice(0, 700);
    const ids = [...tokenizer.prefix, ...tokenizer.encode(story)];
    const input = { ids, bos: 0, bytes: story.length };
    const protocol = { window: 128, stride: 64 };
    const onCpu = await evaluate(open(createCpuBackend()), input, protocol, { perToken: true });
    const onGpu = await evaluate(open(gpu), input, protocol, { perToken: true });
    expect(onGpu).toMatchObject({
      tokens: ids.length - 1,
      engine: 'webgpu',
      protocol: { ...protocol, bos: 0 },
    });
    const worst = onCpu.perToken!.reduce((m, v, i) => Math.max(m, Math.abs(v - onGpu.perToken![i]!)), 0);
    expect(worst).toBeLessThan(2e-4);
    expect(Math.abs(onGpu.perplexity / onCpu.perplexity - 1)).toBeLessThan(1e-5);
    expect(onGpu.peakBytes).toBeGreaterThan(2_000_000);
  });

  it('gives the log-likelihoods of lm-evaluation-harness', async () => {
    const golden = JSON.parse(readFileSync(LM_EVAL_FIXTURE, 'utf8')) as {
      models: Record<string, LogLikelihoodGolden>;
    };
    const files = {
      tokenizer: text('base/tokenizer.json'),
      config: text('base/tokenizer_config.json'),
      hasSentencePiece: false,
    };
    const far = await checkLogLikelihoods(golden.models['samples/base']!, files, open(gpu));
    expect(far).toBeLessThanOrEqual(LOG_LIKELIHOOD_LIMIT);
  });

  it('samples the same sequences however many are written at once', async () => {
    const options = { count: 5, length: 8, temperature: 1, seed: 5, prefix: tokenizer.prefix };
    const all = await generateMany(open(gpu), options);
    expect(new Set(all.map((ids) => ids.join())).size).toBe(5);
    for (const atOnce of [1, 2]) {
      expect(await generateMany(open(gpu), { ...options, atOnce })).toEqual(all);
    }
    // one row and several take different forms of the matrix product: their logits agree but for rounding
    const runner = open(gpu);
    const logitsOf = async (sequences: number[][]) =>
      (
        await runner.pass({
          sequences: sequences.map((ids) => ({ ids, from: ids.length - 1 })),
          output: 'logits',
        })
      ).logits[0]!;
    const [alone, together] = [await logitsOf([[0]]), await logitsOf([[0], ...all])];
    const largest = alone.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    const worst = alone.reduce((m, v, i) => Math.max(m, Math.abs(v - together[i]!)), 0);
    expect(worst / largest).toBeLessThan(1e-5);
  });

  it('writes the published continuations', async () => {
    const { greedy } = JSON.parse(text('expected.json')) as {
      greedy: { base: { prompt: string; prompt_ids: number[]; ids: number[] }[] };
    };
    const prompts = greedy.base.map(({ prompt }) => [...tokenizer.prefix, ...tokenizer.encode(prompt)]);
    expect(prompts).toEqual(greedy.base.map((c) => c.prompt_ids));
    // the first once more: its state is copied
    const again = [...prompts, prompts[0]!];
    const got = await generate(open(gpu), again, { maxTokens: 12, sampling: GREEDY });
    expect(got.map((g) => g.ids)).toEqual([...greedy.base, greedy.base[0]!].map((c) => c.ids.slice(0, 12)));
  });
});

describe('encoders on the graphics device', () => {
  const read = async (path: string) => new Uint8Array(readFileSync(path));

  it.each(ENCODER_NAMES)('%s: logits and masked losses are those of transformers', async (name) => {
    await checkEncoder(name, read, gpu);
  });

  it.each(ENCODER_NAMES)('%s: so is the last stream, with a head and without', (name) =>
    checkLastStream(name, read, gpu),
  );
});

test.each(['linear', 'task_arithmetic'])(
  '%s with a whole contributor: on the graphics device a changed recipe gives what it writes on the processor',
  async (id) => {
    const from = { id, models: MODELS, weights: [0.7, 0.7, 0.7] };
    const { difference, isSum, after, before } = await turned(
      from,
      { ...from, weights: [0.2, 1.1, 0.5] },
      2 ** 30,
      sharedGpu,
    );
    expect(isSum).toBe(true);
    expect(after).not.toEqual(before);
    expect(difference).toBeLessThan(1e-3);
  },
);

// weights of eight bits on the graphics device, against the same on the processor
/** The processor cuts the inputs of a layer to 16 bits; the largest difference of logits, as a share of the largest logit. */
const TOLERANCE = 1e-3;

async function seen(model: string, engine: Backend, rows: number, maxTokens: number) {
  const runner = openSample(model, { residentBytes: 2 ** 30, weights: '8-bit' }, engine);
  const ids = encodeText(readText('texts/kitchen.eval.txt')).slice(0, rows);
  const { logits } = await runner.pass({ sequences: [{ ids, from: 0 }], output: 'logits' });
  const [written] = await generate(runner, [ids.slice(0, 6)], { maxTokens, sampling: GREEDY });
  const { encoded, weightBytes } = runner;
  runner.close();
  return { logits: logits[0]!, ids: written!.ids, encoded, weightBytes };
}

test.each([
  ['base', 'software', 70, 12],
  ['base+kitchen', 'software', 70, 12],
  // a software device takes a second a token for them
  ['base+kitchen', 'real', 8, 2],
] as const)(
  '%s, kernels of %s devices: the logits and the text are those of the processor',
  async (model, guise, rows, tokens) => {
    const processor = createCpuBackend(openSharedWeights(0, () => () => undefined));
    const cpu = await seen(model, processor, rows, tokens);
    const gpu = await seen(model, await sharedGpu(guise), rows, tokens);
    expect([cpu.encoded, gpu.encoded]).toEqual([true, true]);
    expect(gpu.ids).toEqual(cpu.ids);
    const largest = cpu.logits.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    const worst = cpu.logits.reduce((most, v, i) => Math.max(most, Math.abs(v - gpu.logits[i]!)), 0);
    expect(worst / largest).toBeLessThan(TOLERANCE);
    expect(gpu.weightBytes / cpu.weightBytes).toBeCloseTo(36 / 34, 1);
  },
);

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
