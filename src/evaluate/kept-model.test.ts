import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { diskFolder, SAMPLES } from '../../e2e/disk-folder';
import { mergeInNode } from '../../e2e/merge-in-node';
import { AmalgamError } from '../errors';
import { copyOf } from '../formats/recipe';
import { parseRecipe } from '../formats/recipe-yaml';
import * as backends from '../host/backends';
import { type OpenModels, openModels } from '../host/models';
import { methodById } from '../merge/methods';
import type { Plan } from '../merge/plan/plan';
import { makePlan } from '../merge/plan/recipe-plan';
import { scratchFolder } from '../scratch-folder.test.support';
import { runGeneration } from './generation-job';
import { runLivePerplexity } from './job';
import { keepModel } from './kept-model';
import { openRunningModel, plannedConfig } from './running-model';
import { encodeText } from './sample.test.fixture';

const folder = scratchFolder();

const models = openModels(() => ({ url: 'https://hub.invalid' }));
for (const name of ['base', 'kitchen', 'harbour'])
  await models.add(await diskFolder(name, join(SAMPLES, name)), name);

/** Recipes that write f32: factors are not rounded to what they are written in. */
const recipeOf = (kitchen: number, harbour: number, method = 'task_arithmetic') => `merge_method: ${method}
base_model: base
dtype: float32
models:
  - {model: base+kitchen, parameters: {weight: ${kitchen}}}
  - {model: base+harbour, parameters: {weight: ${harbour}}}
`;
const signal = new AbortController().signal;
const planned = async (text: string) => ({
  plan: await makePlan(parseRecipe(text).recipe!, (ref) => models.open(ref), methodById),
});
const REQUEST = {
  prompt: 'Recipe:',
  chat: false,
  maxTokens: 24,
  temperature: 0,
  topP: 1,
  seed: 0,
  engine: 'cpu',
} as const;
const target = { model: 'unused' };

/** A greedy text of a recipe, which becomes another one after `at` tokens. */
async function written(kept: ReturnType<typeof keepModel>, from: string, turn?: { to: string; at: number }) {
  let tokens = 0;
  let took: boolean | undefined;
  const turnSeconds: number[] = [];
  const report = await runGeneration(
    { target, ...REQUEST },
    {
      ...(await planned(from)),
      ...{ models, engine: 'cpu', exact: false, signal },
      onProgress(progress) {
        if (progress.turnSeconds !== undefined) turnSeconds.push(progress.turnSeconds);
        else tokens = progress.done;
      },
      liveText: {
        kept,
        async turn() {
          if (!turn || tokens !== turn.at || took !== undefined) return undefined;
          return {
            ...(await planned(turn.to)),
            taken(is) {
              took = is;
            },
          };
        },
      },
    },
  );
  return { ids: report.ids, took, turnSeconds };
}

const names = new Map<string, Promise<string>>();

/** What a recipe writes, opened; it is written once. */
async function merged(recipe: string) {
  const name = names.get(recipe) ?? writeMerged(recipe);
  names.set(recipe, name);
  return {
    plan: await makePlan(copyOf(await name), (ref) => models.open(ref), methodById),
    ...{ models, engine: 'cpu' as const, exact: true, signal, onProgress: () => {} },
  };
}

async function writeMerged(recipe: string): Promise<string> {
  const out = mkdtempSync(join(folder, 'merged-'));
  cpSync(join(SAMPLES, 'base'), out, { recursive: true });
  const { shards } = await mergeInNode(recipe, SAMPLES, {
    base: 'base',
    kitchen: 'kitchen',
    harbour: 'harbour',
  });
  expect(shards).toHaveLength(1);
  writeFileSync(join(out, 'model.safetensors'), shards[0]!);
  await models.add(await diskFolder(out, out), out);
  return out;
}

/** The greedy text of what a recipe writes. */
async function ofMerged(recipe: string): Promise<number[]> {
  const { ids } = await runGeneration({ target, ...REQUEST }, await merged(recipe));
  return ids;
}

test.each(['task_arithmetic', 'ties'])(
  '%s: a weight that is moved changes the text from the next token on, and what is then written is what the merge writes',
  async (method) => {
    const kept = keepModel();
    const [from, to] = [recipeOf(1, 0.1, method), recipeOf(0.1, 1, method)];
    const before = await written(kept, from);
    expect(before.ids).toEqual(await ofMerged(from));
    const turned = await written(kept, from, { to, at: 6 });
    expect(turned.took).toBe(true);
    expect(turned.turnSeconds).toHaveLength(1);
    expect(turned.ids.slice(0, 6)).toEqual(before.ids.slice(0, 6));
    expect(turned.ids).not.toEqual(before.ids);
    const after = await written(kept, to);
    expect(after.ids).toEqual(await ofMerged(to));
    expect(after.ids).not.toEqual(turned.ids);
    expect(after.ids).not.toEqual(before.ids);
    kept.close();
  },
);

/** Losses of 256 tokens of stretches of a text, window by window, one backend and whole files. */
async function lossesOfMerged(recipe: string, texts: readonly string[]) {
  const model = await openRunningModel(await merged(recipe));
  const losses: number[][] = [];
  let left = 256;
  for (const text of texts) {
    const ids = encodeText(text).slice(0, left + 1);
    const { losses: own } = await model.runner.pass({ sequences: [{ ids, from: 1 }], output: 'loss' });
    losses.push([...own[0]!]);
    left -= ids.length - 1;
    if (left === 0) break;
  }
  model.close();
  return losses;
}

test.each(['task_arithmetic', 'ties'])(
  '%s: a model that stays open is measured as its recipe moves, is stopped, and writes on',
  async (method) => {
    const kept = keepModel();
    const recipes = [recipeOf(1, 0.1, method), recipeOf(0.1, 1, method)];
    const text = readFileSync(join(SAMPLES, 'texts/kitchen.eval.txt'), 'utf8');
    const texts = [0, 200, 900, 1800].map((begin) => text.slice(begin, begin + 600));
    const measured = async (recipe: string, stop = signal) =>
      runLivePerplexity(
        texts.map((own) => ({ text: own })),
        kept,
        {
          ...(await planned(recipe)),
          ...{ models, engine: 'cpu', exact: false, signal: stop, onProgress: () => {} },
        },
      );
    for (const recipe of recipes) {
      const blocks = await measured(recipe);
      expect(blocks.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(256);
      const expected = (await lossesOfMerged(recipe, texts)).flat();
      const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);
      expect(sum(blocks.map(({ loss }) => loss)) / sum(expected)).toBeCloseTo(1, 6);
    }
    const before = await written(kept, recipes[0]!);
    const stop = new AbortController();
    const stopped = measured(recipes[1]!, stop.signal);
    setImmediate(() => stop.abort());
    await expect(stopped).rejects.toMatchObject({ code: 'Canceled' });
    expect((await written(kept, recipes[0]!)).ids).toEqual(before.ids);
    kept.close();
  },
);

test('a text, what is measured after it, and the next text are by one model', async () => {
  const opened = vi.spyOn(backends, 'openEvaluationBackends');
  const kept = keepModel();
  const recipe = recipeOf(1, 0.1);
  await written(kept, recipe);
  const options = { ...(await planned(recipe)), ...{ models, engine: 'cpu' as const, exact: false, signal } };
  await runLivePerplexity([{ text: 'Recipe: Leek Soup' }], kept, { ...options, onProgress: () => {} });
  await written(kept, recipe);
  expect(opened).toHaveBeenCalledTimes(1);
  opened.mockRestore();
  kept.close();
});

test('R41: on a device that is lost in the middle the text goes on from where it was, with the recipe it had come to', async () => {
  const [from, to] = [recipeOf(1, 0.1), recipeOf(0.1, 1)];
  const undisturbed = await written(keepModel(), from, { to, at: 6 });
  const kept = keepModel();
  let opened = 0;
  let losing = 12;
  const watched: typeof kept = {
    ...kept,
    async open(options) {
      opened++;
      const model = await kept.open(options);
      const [engine] = model.engines;
      const read = engine!.read.bind(engine);
      engine!.read = (ranges) => {
        if (ranges.length > 0 && losing-- === 0) throw new AmalgamError('GpuLost', 'Lost.', 'Go on.');
        return read(ranges);
      };
      return model;
    },
  };
  const disturbed = await written(watched, from, { to, at: 6 });
  expect([opened, disturbed.took]).toEqual([2, true]);
  expect(losing).toBeLessThan(0);
  // keys and values of before the turn are read anew, with the weights of after it
  expect(disturbed.ids.slice(0, 12)).toEqual(undisturbed.ids.slice(0, 12));
  expect(disturbed.ids).toHaveLength(undisturbed.ids.length);
  kept.close();
});

test('another base, or a contributor that was not there, takes a new model; one of no weight does not', async () => {
  const kept = keepModel();
  const alone = recipeOf(1, 1).replace(/\n {2}- \{model: base\+harbour.*/, '');
  const refused = await written(kept, alone, { to: recipeOf(1, 1), at: 3 });
  expect(refused.took).toBe(false);
  expect(refused.turnSeconds).toEqual([]);
  expect(refused.ids).toEqual((await written(kept, alone)).ids);
  const silent = await written(kept, recipeOf(1, 1), { to: recipeOf(1, 0), at: 3 });
  expect(silent.took).toBe(true);
  kept.close();
});

test('a folder that is opened again under the same name is read again, and what is canceled before it begins opens nothing', async () => {
  const kept = keepModel();
  const recipe = recipeOf(1, 1);
  await written(kept, recipe);
  const options = { ...(await planned(recipe)), ...{ models, engine: 'cpu' as const, exact: false, signal } };
  const open = (given = signal) => kept.open({ ...options, signal: given, onProgress: () => {} });
  const first = await open();
  expect(await open()).toBe(first);
  await models.add(await diskFolder('kitchen', join(SAMPLES, 'kitchen')), 'kitchen');
  expect(await open()).not.toBe(first);
  kept.close();
  await expect(open(AbortSignal.abort())).rejects.toMatchObject({ code: 'Canceled' });
});

test('a recipe that writes a LoRA says why it does not run by itself', async () => {
  const plan = (output: 'model' | 'adapter') =>
    ({ recipe: { amalgam: { output } }, contributors: ['kitchen'], extras: [] }) as unknown as Plan;
  const config = (output: 'model' | 'adapter') =>
    plannedConfig(plan(output), {} as OpenModels, new AbortController().signal);
  await expect(config('adapter')).rejects.toThrow('runs on its base only');
  await expect(config('model')).rejects.toThrow('kitchen has no config.json');
});
