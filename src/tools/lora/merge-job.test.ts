/** A merge whose change is cut to a LoRA, against the merged model. */
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { smallSample } from '../../../e2e/disk-folder';
import { largestDifference, mergeInNode } from '../../../e2e/merge-in-node';
import { parseRecipe } from '../../formats/recipe-yaml';
import { openModels } from '../../host/models';
import { methodById } from '../../merge/methods';
import { mergeRecipe, planRecipe, planToRun } from '../../recipe/recipe-jobs';
import type { MergeReport } from '../../reports/merge';
import { fileSource } from '../../sources/file-source';
import type { ModelFolder } from '../../sources/model-folder';
import { fakeStorage } from '../../store/opfs.test.fake';
import { listOutputs, openOutputFile } from '../../write/finished-outputs';

const sample = (name: string) =>
  smallSample(name, fileURLToPath(new URL(`../../../public/samples/${name}`, import.meta.url)), {
    ...{ layers: 1, narrower: 4 },
  });
const NAMES = ['base', 'kitchen', 'workshop'];
const opened = async () => {
  const folders: Record<string, ModelFolder> = {};
  for (const name of NAMES) folders[name] = await sample(name);
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const [name, folder] of Object.entries(folders)) await models.add(folder, name);
  return { models, folders };
};

const recipeOf = (method: string, amalgam = '', parameters = '', settings = 'weight: 1') =>
  `merge_method: ${method}\nbase_model: base\nmodels:\n${['base+kitchen', 'workshop']
    .map((model) => `  - {model: ${model}, parameters: {${settings}}}\n`)
    .join('')}${parameters}dtype: float32\n${amalgam}`;

async function cut(text: string): Promise<{ report: MergeReport; folder: ModelFolder }> {
  const { models } = await opened();
  const report = await mergeRecipe(
    {
      recipe: parseRecipe(text).recipe!,
      engine: 'cpu',
      destination: { kind: 'downloads', name: 'lora' },
    },
    models,
    new AbortController().signal,
    () => {},
    undefined,
    () => import('./merge-job'),
  );
  const { files } = (await listOutputs()).find(({ name }) => name === 'lora')!;
  const written = await Promise.all(
    files.map(async ({ path, bytes }) => {
      const file = await openOutputFile('lora', path);
      return { path, byteLength: bytes, open: () => fileSource(file, path) };
    }),
  );
  return { report, folder: { path: 'lora', origin: { kind: 'local' }, files: written } };
}

async function onBase(lora: ModelFolder) {
  const { folders } = await opened();
  const alone = 'merge_method: passthrough\nmodels: [{model: base+lora}]\ndtype: float32\n';
  return (await mergeInNode(alone, '', { ...folders, lora })).tensors;
}

beforeEach(() => vi.stubGlobal('navigator', fakeStorage().navigator));

describe('any merge as a LoRA of its base', () => {
  it.each([
    ['ties', 'weight: 1, density: 0.5', ''],
    ['karcher', '', ''],
    ['linear', 'weight: 1', ''],
    ['gram', 'density: 1', 'parameters: {match: changes}\n'],
    ['gram', 'density: 1', 'parameters: {match: outputs, calibration_windows: 2, calibration_window: 32}\n'],
    ['dare_ties', 'weight: 1, density: 0.5', ''],
  ])('%s of full rank is the merged model: %s %s', async (method, settings, parameters) => {
    const full = 'amalgam: {output: adapter, combination: merged_svd, rank: 4096}\n';
    const { report, folder } = await cut(recipeOf(method, full, parameters, settings));
    expect(report.lora!.merged.error).toBeLessThan(1e-4);
    const { folders } = await opened();
    const whole = recipeOf(method, '', parameters, settings);
    // a method without a base would count it as one of the models
    const isCounted = methodById.get(method)!.base === 'none';
    const model = await mergedModel(isCounted ? whole.replace('base_model: base\n', '') : whole, folders);
    const tensors = await onBase(folder);
    for (const [name, values] of model)
      expect(largestDifference(tensors.get(name)!.values, values).relative, name).toBeLessThan(1e-5);
  });

  it('keeps the share that is asked for in every module, by the fewest ranks', async () => {
    const { report } = await cut(
      recipeOf('ties', 'amalgam: {output: adapter, energy: 0.9}\n', '', 'weight: 1, density: 0.5'),
    );
    const { modules, rank } = report.lora!;
    expect(rank).toEqual({ kind: 'energy', share: 0.9 });
    expect(modules.length).toBeGreaterThan(6);
    for (const { module, error, rank: own, singularValues, normDelta } of modules) {
      expect(error! ** 2, module).toBeLessThan(0.1001);
      const kept = singularValues.slice(0, own - 1).reduce((sum, s) => sum + s * s, 0);
      if (own > 1) expect(kept, module).toBeLessThan(0.9 * normDelta ** 2);
    }
    const bytes = report.shards[0]!.bytes;
    expect(bytes).toBeLessThan(
      (await planOf(recipeOf('ties', 'amalgam: {output: adapter, energy: 0.9}\n'))).bytesToWrite,
    );
  });

  it('runs before it is written as the merge that it is cut from, and the plan says so', async () => {
    const { models } = await opened();
    const { recipe } = parseRecipe(recipeOf('karcher', 'amalgam: {output: adapter}\n', '', ''));
    const plan = await planRecipe(recipe!, models);
    expect(plan.problems.map(({ code }) => code)).toContain('CutWhenWritten');
    expect((await planToRun(recipe!, models)).tensors.map(({ name }) => name)).toContain(
      'model.embed_tokens.weight',
    );
  });

  it.each([
    [
      'no base',
      'merge_method: linear\nmodels: [{model: workshop, parameters: {weight: 1}}]\namalgam: {output: adapter}\n',
      /names none/,
    ],
    [
      'slices',
      'merge_method: passthrough\nbase_model: base\nslices: [{sources: [{model: workshop, layer_range: [0, 1]}]}]\namalgam: {output: adapter, combination: merged_svd}\n',
      /Slices make/,
    ],
    ['GGUF', recipeOf('ties', 'amalgam: {output: adapter, gguf: F16}\n'), /made of a finished one/],
  ])('%s is refused, with what to do', async (_, text, words) => {
    const problems = (await planOf(text)).problems.filter(({ severity }) => severity === 'error');
    expect(problems.map(({ message }) => message).join()).toMatch(words);
  });
});

async function planOf(text: string) {
  const { models } = await opened();
  return planRecipe(parseRecipe(text).recipe!, models);
}

async function mergedModel(text: string, folders: Record<string, ModelFolder>) {
  if (!text.includes('merge_method: gram')) {
    const { tensors } = await mergeInNode(text, '', folders);
    return new Map([...tensors].map(([name, { values }]) => [name, values]));
  }
  const { calibrateInNode } = await import('../../../e2e/calibrate-in-node');
  const merge = await calibrateInNode(text, { root: '', folders });
  const names = merge.plan.tensors.map(({ name }) => name);
  return new Map(await Promise.all(names.map(async (name) => [name, await merge.tensor(name)] as const)));
}
