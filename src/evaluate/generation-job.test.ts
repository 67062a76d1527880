import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { diskFolder, SAMPLES } from '../../e2e/disk-folder';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import { copyOf } from '../formats/recipe';
import * as backends from '../host/backends';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import type { KeptWeights, WrittenToken } from '../reports/evaluate';
import { scratchFolder } from '../scratch-folder.test.support';
import { runAnswers, runGeneration } from './generation-job';
import { encodeText, openSample } from './sample.test.fixture';

const TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m['content'] | trim }}{% endfor %}";
const folder = scratchFolder();
afterEach(() => vi.restoreAllMocks());

const signal = new AbortController().signal;

/** A model of a folder, and the base of the sample, opened; and their plans. */
async function opened(model: string, path: string) {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  await models.add(await diskFolder(model, path), model);
  await models.add(await diskFolder('base', join(SAMPLES, 'base')), 'base');
  return { models, planOf: (name: string) => makePlan(copyOf(name), (ref) => models.open(ref), methodById) };
}

/** Text that a model of the sample generates, alone on the processor; the base of the sample is asked too where it is told. */
async function written(
  model: string,
  path: string,
  prompt: string,
  chat: boolean,
  asksBase = false,
  weights: KeptWeights = 'auto',
) {
  const { models, planOf } = await opened(model, path);
  const plan = await planOf(model);
  const against = asksBase ? { plan: await planOf('base'), exact: true } : undefined;
  return runGeneration(
    {
      target: { model },
      ...{ prompt, chat, weights },
      maxTokens: 4,
      temperature: 0,
      topP: 1,
      seed: 0,
      engine: 'cpu',
    },
    { plan, models, engine: 'cpu', exact: true, signal, onProgress: () => {}, ...(against && { against }) },
  );
}

test('every token has its text, its probability, and the one that the base gives it', async () => {
  const { ids, text, tokens } = await written('workshop', join(SAMPLES, 'workshop'), 'Job:', false, true);
  expect(tokens.map((token) => token.text).join('')).toBe(text);
  const prompt = encodeText('Job:');
  for (const [model, of] of [
    ['workshop', ({ probability }: WrittenToken) => probability],
    ['base', ({ against }: WrittenToken) => against],
  ] as const) {
    const runner = openSample(model);
    for (const [i, token] of tokens.entries()) {
      // all logits, and an f64 softmax
      const before = [...prompt, ...ids.slice(0, i)];
      const { logits } = await runner.pass({
        sequences: [{ ids: before, from: before.length - 1 }],
        output: 'logits',
      });
      const weights = [...logits[0]!].map(Math.exp);
      const expected = weights[ids[i]!]! / weights.reduce((a, b) => a + b, 0);
      expect(of(token)! / expected).toBeCloseTo(1, 4);
    }
    runner.close();
  }
});

test('several models answer the same prompts as each alone, and a prompt that is asked twice has two answers', async () => {
  const path = join(SAMPLES, 'workshop');
  const { models, planOf } = await opened('workshop', path);
  const done: number[] = [];
  const ask = (prompts: string[], temperature: number) =>
    runAnswers(
      {
        ...{ targets: [{ model: 'workshop' }, { model: 'base' }], prompts, chat: false, engine: 'cpu' },
        ...{ maxTokens: 4, temperature, topP: 1, seed: 0 },
      },
      {
        ...{ models, signal, onProgress: (progress) => done.push(progress.done / progress.total) },
        plan: async (target) => ({ plan: await planOf('model' in target ? target.model : ''), exact: true }),
      },
    );
  const answers = await ask(['Job:', 'Log of the'], 0);
  for (const [m, model] of ['workshop', 'base'].entries()) {
    for (const [p, prompt] of ['Job:', 'Log of the'].entries()) {
      expect(answers[m]![p]).toBe((await written(model, join(SAMPLES, model), prompt, false)).text);
    }
  }
  expect(done.at(-1)).toBe(1);
  expect(done.toSorted((a, b) => a - b)).toEqual(done);
  const [again] = await ask(['Job:', 'Job:'], 1.5);
  expect(again![0]).not.toBe(again![1]);
});

test('a chat goes through the template of the model, which writes its own beginning', async () => {
  cpSync(join(SAMPLES, 'workshop'), folder, { recursive: true });
  writeFileSync(join(folder, 'chat_template.jinja'), TEMPLATE);
  const chat = await written('chat', folder, '  Recipe: ', true);
  const text = await written('chat', folder, 'Recipe:', false);
  expect(chat.ids).toEqual(text.ids);
  expect(chat.ids).toHaveLength(4);
});

test('a model without a template is refused, with the way out', async () => {
  await expect(written('plain', join(SAMPLES, 'workshop'), 'Recipe:', true)).rejects.toMatchObject({
    code: 'TokenizerUnsupported',
    message: expect.stringContaining('no chat template') as string,
  });
});

test('weights are kept at 8 bits where that is asked for, or nothing else fits, which the report says; else it is refused', async () => {
  const path = join(SAMPLES, 'workshop');
  const write = (weights: KeptWeights) => written('workshop', path, 'Job:', false, false, weights);
  await expect(write('8-bit')).rejects.toMatchObject({ code: 'Usage' });
  const stored = await write('stored');
  vi.spyOn(backends, 'openEvaluationBackends').mockImplementation(async () => [
    createCpuBackend(openSharedWeights(0, () => () => undefined)),
  ]);
  const [asked, fitting] = [await write('8-bit'), await write('auto')];
  expect([stored.eightBits, asked.eightBits, fitting.eightBits]).toEqual([undefined, true, undefined]);
  expect(asked.ids).toEqual(stored.ids);
  expect(fitting.tokens).toEqual(stored.tokens);
  expect(asked.tokens).not.toEqual(stored.tokens);
  expect(asked.peakBytes).toBeLessThan(stored.peakBytes);
});
