/** The sample model on the graphics device: perplexity as on the processor, greedy text as published. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { createTokenizer, type Tokenizer } from '../foreign/tokenizer';
import { parseModelConfig } from '../formats/model-config';
import { ENCODER_NAMES } from '../forward/families.test.cases';
import { type FileTensor, readTensors } from '../forward/golden.test.fixture';
import { openRunner } from '../forward/runner';
import { sourceOf } from '../forward/runner.test.cases';
import { resolveArchitecture } from '../models/resolution';
import { checkLastStream } from './embedded.test.cases';
import { GREEDY, generate } from './generation';
import {
  checkLogLikelihoods,
  LM_EVAL_FIXTURE,
  LOG_LIKELIHOOD_LIMIT,
  type LogLikelihoodGolden,
} from './log-likelihood.test.cases';
import { checkEncoder } from './masked.test.cases';
import { evaluate } from './perplexity';
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
    const options = { count: 5, length: 14, temperature: 1, seed: 5, prefix: tokenizer.prefix };
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
