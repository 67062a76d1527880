import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { calibrateInNode } from '../../../e2e/calibrate-in-node';
import { smallSample } from '../../../e2e/disk-folder';
import { mergeInNode } from '../../../e2e/merge-in-node';
import type { Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { parseRecipe } from '../../formats/recipe-yaml';
import { memoryFolder } from '../../inputs/memory-models.test.support';
import { methodById } from '../../merge/methods';
import { fakeStorage } from '../../store/opfs.test.fake';
import { gallery } from './RecipesDialog';

const samples = join(fileURLToPath(new URL('../../..', import.meta.url)), 'public/samples');
// all layers, which recipes name, of a sixteenth of the elements
const folders = Object.fromEntries(
  await Promise.all(
    ['base', 'kitchen', 'harbour', 'workshop'].map(
      async (name) =>
        [
          `samples/${name}`,
          await smallSample(`samples/${name}`, join(samples, name), { narrower: 4 }),
        ] as const,
    ),
  ),
);
const texts = Object.fromEntries(
  ['kitchen', 'harbour', 'workshop'].map((name) => [
    `${name}.calibration.txt`,
    readFileSync(join(samples, `texts/${name}.calibration.txt`), 'utf8').slice(0, 6000),
  ]),
);
const { tensors: base } = await mergeInNode(
  'merge_method: passthrough\nmodels: [{model: samples/base}]\n',
  samples,
  folders,
);
const read = (yaml: string): Recipe => {
  const { recipe, problems } = parseRecipe(yaml);
  expect(problems).toEqual([]);
  return recipe!;
};

/** Merges a recipe and the stages before it, each output the next one's input. */
async function merge(recipe: Recipe) {
  const known: Parameters<typeof mergeInNode>[2] = { ...folders };
  for (const stage of recipe.stages ?? []) {
    const { shards, config } = await mergeInNode(formatRecipe(stage), samples, known);
    Object.assign(known, {
      [stage.name]: memoryFolder(stage.name, {
        'config.json': config!,
        'model.safetensors': shards[0] as Uint8Array<ArrayBuffer>,
        'tokenizer.json': readFileSync(join(samples, 'base/tokenizer.json'), 'utf8'),
      }),
    });
  }
  const { stages: _, ...last } = recipe;
  const text = formatRecipe(last);
  if (methodById.get(last.mergeMethod)?.compute.kind !== 'solved') return mergeInNode(text, samples, known);
  // a few windows are enough to see that it merges
  const little = { calibration_windows: 4, calibration_window: 64 };
  const short = formatRecipe({ ...last, parameters: { ...last.parameters, ...little } });
  vi.stubGlobal('navigator', fakeStorage().navigator);
  const { prepared } = await calibrateInNode(short, { root: samples, folders, texts });
  return mergeInNode(text, samples, known, undefined, prepared);
}

describe('the gallery', () => {
  it('has eight examples, each of another kind: stages, layers, filters over a gradient, an adapter, methods', () => {
    const recipes = gallery.map(({ yaml }) => read(yaml));
    expect(recipes).toHaveLength(8);
    expect(recipes.filter((r) => r.stages)).toHaveLength(1);
    expect(recipes.filter((r) => r.slices)).toHaveLength(1);
    expect(recipes.filter((r) => r.amalgam.output === 'adapter')).toHaveLength(1);
    const t = recipes.find((r) => r.mergeMethod === 'slerp' && !r.stages)!.parameters.t;
    expect(Array.isArray(t) && t.some((e) => typeof e === 'object' && e.filter?.includes('*'))).toBe(true);
    expect(new Set(recipes.map((r) => r.mergeMethod)).size).toBe(7);
  });

  it('says of each in a title and one line what it shows', () => {
    expect(new Set(gallery.map((example) => example.title)).size).toBe(gallery.length);
    for (const { title, shows, yaml } of gallery) {
      expect(yaml).toMatch(/^# .+\n# .+\.\n[^#]/);
      expect(title.length).toBeLessThan(40);
      expect(shows.length).toBeLessThan(120);
    }
  });
});

describe.each(gallery)('$id', ({ yaml }) => {
  it('goes from YAML to a recipe and back unchanged', () => {
    const recipe = read(yaml);
    const written = formatRecipe(recipe);
    expect(read(written)).toEqual(recipe);
    expect(formatRecipe(read(written))).toBe(written);
  });

  it('runs on the sample', async () => {
    const { tensors, reports } = await merge(read(yaml));
    expect(tensors.size).toBeGreaterThanOrEqual(56);
    expect(reports.every((report) => report.nonFinite === 0)).toBe(true);
    const changed = [...tensors].filter(
      ([name, { bytes }]) => !Buffer.from(bytes).equals(base.get(name)?.bytes ?? new Uint8Array()),
    );
    expect(changed.length).toBeGreaterThan(0);
  });
});
