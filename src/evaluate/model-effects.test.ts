/** Effects of a merge's weights by contributor, against whole models that lack one change each: brute force over written files. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SAMPLES, smallSample } from '../../e2e/disk-folder';
import { mergeInNode } from '../../e2e/merge-in-node';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseModelConfig } from '../formats/model-config';
import { parseRecipe } from '../formats/recipe-yaml';
import { readTensors } from '../forward/golden.test.fixture';
import { openRunner } from '../forward/runner';
import { sourceOf } from '../forward/runner.test.cases';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import { resolveArchitecture } from '../models/resolution';
import type { RunTarget } from '../reports/evaluate';
import { runEffects } from './generation-job';
import { encodeText } from './sample.test.fixture';

const NAMES = ['base', 'kitchen', 'harbour', 'workshop'];
const FOLDERS = Object.fromEntries(
  await Promise.all(
    NAMES.map(async (name) => [name, await smallSample(name, join(SAMPLES, name), { layers: 2 })] as const),
  ),
);
const CONTRIBUTORS = ['base+kitchen', 'base+harbour', 'workshop'];
const signal = new AbortController().signal;

const models = openModels(() => ({ url: 'https://hub.invalid' }));
for (const [name, folder] of Object.entries(FOLDERS)) await models.add(folder, name);

const recipeOf = (method: string, contributors: readonly string[]) => `merge_method: ${method}
base_model: base
dtype: float32
models:
${contributors.map((model, i) => `  - {model: ${model}, parameters: {weight: ${[0.9, 1.2, 0.7][i]}}}`).join('\n')}
`;
/** With the weights that they have among all. */
const without = (recipe: string, model: string) =>
  recipe.replace(new RegExp(`.*model: ${model.replace('+', '\\+')}[^+].*\n`), '');
const plannedTarget = async (target: RunTarget) => {
  if (!('recipe' in target)) throw new Error('no recipe');
  return { plan: await makePlan(target.recipe, (ref) => models.open(ref), methodById), exact: false };
};

const { config } = await mergeInNode(recipeOf('ties', CONTRIBUTORS), SAMPLES, FOLDERS);
const architecture = resolveArchitecture(parseModelConfig(config!, 'config.json'));
const prompt = 'Recipe:';
const ids = encodeText(
  ' Leek Soup\nFor four people. Wash the leeks, and mind the gale at the harbour.',
).slice(1);

async function written(recipe: string) {
  const { shards } = await mergeInNode(recipe, SAMPLES, FOLDERS);
  return readTensors(new Uint8Array(shards[0]!));
}

/** Σ ln p of the text by a model of these tensors. */
async function logProbability(tensors: ReturnType<typeof readTensors>) {
  const runner = openRunner(createCpuBackend(), architecture, sourceOf(tensors));
  const all = encodeText(prompt);
  const { losses } = await runner.pass({
    sequences: [{ ids: [...all, ...ids], from: all.length }],
    output: 'loss',
  });
  runner.close();
  return -losses[0]!.reduce((a, b) => a + b, 0);
}

test.each(['task_arithmetic', 'ties'])(
  '%s: effects of a contributor are those of whole models that lack its change of one tensor',
  async (method) => {
    const recipe = recipeOf(method, CONTRIBUTORS);
    const others = CONTRIBUTORS.map((model) => without(recipe, model));
    const done: number[] = [];
    const effects = await runEffects(
      {
        ...{ recipe: parseRecipe(recipe).recipe!, prompt, chat: false, ids, engine: 'cpu' },
        without: others.map((other) => ({ recipe: parseRecipe(other).recipe! })),
      },
      {
        ...{ plan: plannedTarget, models, signal },
        onProgress: (progress) => done.push(progress.done / progress.total),
      },
    );
    expect(done.at(-1)).toBe(1);
    const merged = await written(recipe);
    const whole = await logProbability(merged);
    for (const [m, other] of others.entries()) {
      const lacking = await written(other);
      expect(effects[m]).toHaveLength(14);
      for (const { name, effect } of effects[m]!) {
        const one = await logProbability(new Map([...merged, [name, lacking.get(name)!]]));
        expect(Math.abs(effect - (whole - one)), `${CONTRIBUTORS[m]} ${name}`).toBeLessThan(1e-4);
      }
      expect(Math.max(...effects[m]!.map(({ effect }) => Math.abs(effect)))).toBeGreaterThan(0.05);
    }
  },
);
