/** Masks of the sample under two recipes, counted again by sorting in plain loops and by the counts of two merges. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { smallSample } from '../../../e2e/disk-folder';
import { mergeInNode, planInNode, readTensors } from '../../../e2e/merge-in-node';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import type { Recipe } from '../../formats/recipe';
import { parseRecipe } from '../../formats/recipe-yaml';
import { openModels } from '../../host/models';
import { methodById } from '../../merge/methods';
import { makePlan } from '../../merge/plan/recipe-plan';
import type { OverlapProgress } from '../../reports/delta-statistics';
import { countOverlaps, runMaskOverlap } from './mask-overlap';

const samples = join(import.meta.dirname, '../../../public/samples');
const MODELS = ['base+kitchen', 'base+harbour', 'workshop'];
const DENSITY = 0.2;
const NAMES = ['base', 'workshop', 'kitchen', 'harbour'];
// two layers, where it is the counting that is looked at
const folders = await Promise.all(NAMES.map((name) => smallSample(name, join(samples, name), { layers: 2 })));
const small = Object.fromEntries(NAMES.map((name, i) => [name, folders[i]!]));

const recipeOf = (parameters: object, method = 'ties') =>
  JSON.stringify({
    merge_method: method,
    base_model: 'base',
    dtype: 'bfloat16',
    models: MODELS.map((model) => ({ model, parameters: { weight: 1, density: DENSITY } })),
    parameters,
  });
const perTensor = recipeOf({});
const wholeModel = recipeOf({ semantics: 'paper' });

async function overlapsOf(
  model: string,
  recipes: [string, string],
  tileElements?: number,
  of: typeof small = small,
) {
  const [a, b] = [await planInNode(recipes[0], samples, of), await planInNode(recipes[1], samples, of)];
  return countOverlaps([a, b], model, {
    engine: createCpuBackend(),
    ...(tileElements === undefined ? {} : { tileElements }),
  });
}

async function stored(name: string) {
  const file = small[name]!.files.find(({ path }) => path === 'model.safetensors')!.open();
  return readTensors(await file.read(0, file.byteLength), name);
}

it('per tensor and whole model: what sorting keeps, whatever the tiles', async () => {
  const [base, tuned] = [await stored('base'), await stored('workshop')];
  const sizes = new Map(
    [...tuned].map(([name, { values }]) => {
      const before = base.get(name)!.values;
      return [name, values.map((w, e) => Math.abs(Math.fround(w - before[e]!)))];
    }),
  );
  const all = Float32Array.from([...sizes.values()].flatMap((own) => [...own])).sort();
  // the authors' threshold: the (⌊ρN⌋ + 1)-th largest of the model stays, and all that equal it
  const least = all[all.length - 1 - Math.floor(DENSITY * all.length)]!;
  const counted = await overlapsOf('workshop', [perTensor, wholeModel]);
  expect(counted.length).toBeGreaterThan(15);
  for (const { name, elements, kept, both } of counted) {
    const own = sizes.get(name)!;
    const order = [...own.keys()].sort((a, b) => own[b]! - own[a]! || a - b);
    const inA = new Set(
      order.slice(0, Math.max(1, Math.floor(DENSITY * elements))).filter((e) => own[e] !== 0),
    );
    const inB = new Set(order.filter((e) => own[e]! >= least && own[e] !== 0));
    expect({ kept, both }, name).toEqual({
      kept: [inA.size, inB.size],
      both: [...inA].filter((e) => inB.has(e)).length,
    });
  }
  expect(await overlapsOf('workshop', [perTensor, wholeModel], 4096)).toEqual(counted);
});

it('each run keeps what its merge counts, of every model', async () => {
  const runs = [perTensor, recipeOf({}, 'dare_linear')] as [string, string];
  const merges = [await mergeInNode(runs[0], samples, small), await mergeInNode(runs[1], samples, small)];
  for (const model of MODELS) {
    for (const { name, kept } of await overlapsOf(model, runs)) {
      const counts = merges.map(({ reports }) => {
        const report = reports.find((r) => r.name === name)!;
        const i = report.contributors.findIndex(({ id }) => id === model);
        return report.counts!.shared[i]![i]!;
      });
      expect(kept, `${model} ${name}`).toEqual(counts);
    }
  }
});

it('the layers of the sample agree as the study of Layers found, which ranked the linear weights alone', async () => {
  const { plan } = await planInNode(perTensor, samples, {});
  const isLinear = (name: string) => name.includes('_proj.');
  const sizeOf = (tensors: readonly { elements: number }[]) => tensors.reduce((n, t) => n + t.elements, 0);
  const share = sizeOf(plan.tensors.filter((t) => isLinear(t.name))) / sizeOf(plan.tensors);
  // an adapter of the linear weights alone: the share of them that stays is that of the model, less what is no linear weight
  const ofLinear = wholeModel.replaceAll(`"density":${DENSITY}`, `"density":${DENSITY * share}`);
  const counted = await overlapsOf('base+kitchen', [perTensor, ofLinear], undefined, {});
  for (const [layer, found] of [0.39, 0.71, 0.61, 0.76, 0.81, 0.78].entries()) {
    const own = counted.filter(({ name }) => name.includes(`layers.${layer}.`) && isLinear(name));
    const overlaps = own.map(({ kept, both }) => both / (kept[0] + kept[1] - both));
    expect(own).toHaveLength(7);
    expect(Math.abs(overlaps.reduce((a, b) => a + b, 0) / 7 - found), `layer ${layer}`).toBeLessThan(0.01);
  }
});

it('the job opens the files of both recipes, each once, and counts the same', async () => {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const folder of folders) await models.add(folder, folder.path);
  const recipes = [perTensor, wholeModel].map((text) => parseRecipe(text).recipe!) as [Recipe, Recipe];
  const told: OverlapProgress[] = [];
  const counted = await runMaskOverlap(
    { recipes, model: 'workshop', engine: 'cpu' },
    {
      plan: async (recipe) => ({ plan: await makePlan(recipe, (name) => models.open(name), methodById) }),
      models,
      signal: new AbortController().signal,
      onProgress: (progress) => told.push(progress),
    },
  );
  expect(counted).toEqual(await overlapsOf('workshop', [perTensor, wholeModel]));
  expect(told.flatMap(({ finished }) => finished)).toEqual(counted);
});
