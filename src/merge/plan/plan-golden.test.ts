/** Plans of recipes whose outputs mergekit wrote (the goldens `mergekit`), and of the sample family. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { goldenFolder } from '../../../e2e/goldens';
import type { Recipe } from '../../formats/recipe';
import { parseRecipe } from '../../formats/recipe-yaml';
import { headerLength, parseSafetensorsHeader } from '../../formats/safetensors-header';
import { memoryFolder, openerOf } from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { methodById } from '../methods';
import { planReport } from './plan-report';
import { makePlan } from './recipe-plan';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const golden = goldenFolder('mergekit');

function bytes(path: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(readFileSync(path));
}

function goldenModel(name: string): ModelFolder {
  return memoryFolder(name, {
    'config.json': bytes(join(golden, 'config.json')),
    'model.safetensors': bytes(join(golden, `in_${name}.safetensors`)),
    'tokenizer.json': '{"model":{"vocab":{}}}',
  });
}

/** Name → dtype and shape of the tensors of a file. */
function tensorsOf(file: Uint8Array<ArrayBuffer>): Map<string, string> {
  const end = 8 + headerLength(file.subarray(0, 8), file.length);
  const { tensors } = parseSafetensorsHeader(file.subarray(8, end), file.length, 'golden');
  return new Map([...tensors].map(([name, { dtype, shape }]) => [name, `${dtype} [${shape}]`]));
}

const models = ['base', 'a', 'b', 'c'].map(goldenModel);
const recipes = readdirSync(golden)
  .filter((file) => file.endsWith('.yml'))
  .map((file) => ({
    name: file.slice(0, -4),
    recipe: parseRecipe(readFileSync(join(golden, file), 'utf8')).recipe!,
  }))
  .filter(({ recipe }) => methodById.has(recipe.mergeMethod));
const planGolden = (name: string) =>
  makePlan(recipes.find((r) => r.name === name)!.recipe, openerOf(...models), methodById);

describe('plans of the mergekit goldens', () => {
  it('are about every method there is', () => {
    const covered = new Set(recipes.map(({ recipe }) => recipe.mergeMethod));
    for (const id of ['linear', 'task_arithmetic', 'ties', 'dare_linear', 'dare_ties', 'passthrough']) {
      expect(covered).toContain(id);
    }
  });

  it.each(recipes)('$name: the tensors that mergekit wrote', async ({ name, recipe }) => {
    const plan = await makePlan(recipe, openerOf(...models), methodById);
    expect(plan.problems.filter((p) => p.severity === 'error')).toEqual([]);
    const planned = new Map(plan.tensors.map((t) => [t.name, `${t.dtype} [${t.shape}]`]));
    const written = tensorsOf(bytes(join(golden, `out_${name}.safetensors`)));
    expect(Object.fromEntries(planned)).toEqual(Object.fromEntries(written));
  });

  it('linear_grad_filter: gradients over the layers, filters by name, ends at 0', async () => {
    const plan = await planGolden('linear_grad_filter');
    const weight = (name: string) => plan.tensors.find((t) => t.name === name)!.models[0]!.parameters.weight;
    // self_attn [0, 0.5, 1] and mlp [1, 0] over three layers; all else 0.25.
    expect([0, 1, 2].map((i) => weight(`model.layers.${i}.self_attn.q_proj.weight`))).toEqual([0, 0.5, 1]);
    expect([0, 1, 2].map((i) => weight(`model.layers.${i}.mlp.down_proj.weight`))).toEqual([1, 0.5, 0]);
    for (const name of ['model.embed_tokens', 'model.norm', 'lm_head', 'model.layers.1.input_layernorm']) {
      expect(weight(`${name}.weight`)).toBe(0.25);
    }
    // Layer 0 of the attention is all of b.
    const attention = plan.tensors.find((t) => t.name === 'model.layers.0.self_attn.q_proj.weight')!;
    expect(attention.copy).toMatchObject({ folder: 'b' });
  });

  it('passthrough_scale_stack: what is scaled is computed, the rest copied', async () => {
    const plan = await planGolden('passthrough_scale_stack');
    expect(plan.layers).toBe(4);
    const computed = plan.tensors.filter((t) => !t.copy);
    expect(computed.map((t) => [t.name, t.models[0]!.id, t.models[0]!.parameters.scale])).toEqual([
      ['model.layers.0.mlp.down_proj.weight', 'a', 0.5],
      ['model.layers.1.mlp.down_proj.weight', 'a', 0.5],
    ]);
    const from = (name: string) => plan.tensors.find((t) => t.name === name)!.copy;
    expect(from('model.embed_tokens.weight')).toMatchObject({ folder: 'a' });
    expect(from('model.layers.2.mlp.down_proj.weight')).toMatchObject({
      folder: 'b',
      key: 'model.layers.1.mlp.down_proj.weight',
    });
    expect(from('lm_head.weight')).toMatchObject({ folder: 'b' });
    expect(from('model.norm.weight')).toMatchObject({ folder: 'b' });
  });

  it('gradients end at 0 as in mergekit unless the recipe says nearest', async () => {
    const recipe = (gradientEnds?: 'nearest'): Recipe => ({
      mergeMethod: 'task_arithmetic',
      baseModel: 'base',
      models: [{ model: 'a', parameters: { weight: [0.25, 0.75] } }],
      parameters: {},
      amalgam: gradientEnds ? { gradientEnds } : {},
    });
    const weights = async (r: Recipe) => {
      const plan = await makePlan(r, openerOf(...models), methodById);
      return ['model.embed_tokens.weight', 'model.norm.weight', 'lm_head.weight'].map(
        (name) => plan.tensors.find((t) => t.name === name)!.models[0]!.parameters.weight,
      );
    };
    expect(await weights(recipe())).toEqual([0.25, 0.25, 0.25]);
    expect(await weights(recipe('nearest'))).toEqual([0.25, 0.75, 0.75]);
  });
});

describe('the plan of the sample family', () => {
  const sample = (name: string): ModelFolder => {
    const folder = join(root, 'public/samples', name);
    return memoryFolder(
      `samples/${name}`,
      Object.fromEntries(readdirSync(folder).map((file) => [file, bytes(join(folder, file))])),
    );
  };

  it('is clean, and knows what each contributor changes', async () => {
    const contributors = ['samples/base+samples/kitchen', 'samples/base+samples/harbour', 'samples/workshop'];
    const recipe: Recipe = {
      mergeMethod: 'ties',
      baseModel: 'samples/base',
      models: contributors.map((model) => ({ model, parameters: { weight: 1, density: 0.2 } })),
      parameters: {},
      amalgam: {},
    };
    const folders = ['base', 'kitchen', 'harbour', 'workshop'].map(sample);
    const plan = await makePlan(recipe, openerOf(...folders), methodById);
    expect(plan.problems).toEqual([]);
    const report = planReport(plan);
    expect(report).toMatchObject({ clean: true, contributors, base: 'samples/base', layers: 6 });
    expect(report.tensors).toHaveLength(56);
    for (const tensor of report.tensors) {
      expect(tensor.dtype).toBe('BF16');
      expect(tensor.contributors).toEqual(tensor.module.endsWith('_proj') ? [0, 1, 2] : [2]);
    }
    expect(report.outputFiles).toEqual([
      'model.safetensors',
      'config.json',
      'generation_config.json',
      'tokenizer.json',
      'tokenizer_config.json',
      'special_tokens_map.json',
      'mergekit_config.yml',
      'README.md',
      'amalgam-hashes.json',
    ]);
    expect(report.bytesToDownload).toBe(0);
    // Base and fine-tune whole, and the factors of both adapters.
    expect(report.bytesToRead).toBe(2 * 2 * 1_238_656 + 2 * 4 * 112_128);
    const config = plan.extras.find((e) => e.path === 'config.json')!.content as { text: string };
    const original = new TextDecoder().decode(bytes(join(root, 'public/samples/base/config.json')));
    expect(config.text).toBe(original);
  });
});
