import { describe, expect, it } from 'vitest';
import type { Recipe } from '../../formats/recipe';
import {
  factors,
  memoryFolder,
  openerOf,
  recipeOf,
  safetensors,
  tinyAdapter,
  tinyModel,
} from '../../inputs/memory-models.test.support';
import type { PlanProblem } from '../../reports/plan';
import type { ModelFolder } from '../../sources/model-folder';
import { methodById } from '../methods';
import type { Plan } from './plan';
import { makePlan } from './recipe-plan';

const planOf = (recipe: Recipe, ...folders: ModelFolder[]) =>
  makePlan(recipe, openerOf(...folders), methodById);
const tensor = (plan: Plan, name: string) => plan.tensors.find((t) => t.name === name)!;
const codes = (problems: PlanProblem[]) => problems.map((p) => p.code);
const q0 = 'model.layers.0.self_attn.q_proj';

describe('makePlan', () => {
  it('plans every tensor of a base and a fine-tune, in natural order', async () => {
    const plan = await planOf(recipeOf(['tuned']), tinyModel('base'), tinyModel('tuned'));
    expect(plan.problems).toEqual([]);
    expect(plan.tensors.map((t) => t.name)).toEqual([
      'model.embed_tokens.weight',
      'model.layers.0.input_layernorm.weight',
      'model.layers.0.mlp.up_proj.weight',
      'model.layers.0.self_attn.q_proj.weight',
      'model.layers.1.input_layernorm.weight',
      'model.layers.1.mlp.up_proj.weight',
      'model.layers.1.self_attn.q_proj.weight',
      'model.norm.weight',
    ]);
    const planned = tensor(plan, `${q0}.weight`);
    expect(planned).toMatchObject({
      shape: [4, 4],
      elements: 16,
      dtype: 'F32',
      method: 'task_arithmetic',
      base: { onBase: true, origin: { folder: 'base' } },
      models: [{ id: 'tuned', view: { onBase: false, origin: { folder: 'tuned' } } }],
    });
    expect(planned.models[0]!.parameters.weight).toBe(1);
    expect(plan).toMatchObject({ base: 'base', contributors: ['tuned'], layers: 2, bytesToDownload: 0 });
    expect(plan.shards.map((s) => s.file)).toEqual(['model.safetensors']);
    expect(plan.inputs.map((i) => [i.folder, i.file])).toEqual([
      ['base', 'model.safetensors'],
      ['tuned', 'model.safetensors'],
    ]);
    expect(plan.bytesToRead).toBe(2 * 4 * 140);
    expect(plan.extras.map((e) => e.path)).toEqual([
      'config.json',
      'tokenizer.json',
      'mergekit_config.yml',
      'README.md',
    ]);
  });

  it('writes the dtype the recipe asks for, and says so in the config', async () => {
    const recipe = recipeOf(['tuned'], { outDtype: 'bfloat16' });
    const plan = await planOf(recipe, tinyModel('base'), tinyModel('tuned'));
    expect(new Set(plan.tensors.map((t) => t.dtype))).toEqual(new Set(['BF16']));
    const config = plan.extras.find((e) => e.path === 'config.json')!.content as { text: string };
    expect(JSON.parse(config.text).torch_dtype).toBe('bfloat16');
  });

  it('copies what nothing touches, and computes it where the dtype changes', async () => {
    const base = tinyModel('base', {
      tensors: { 'model.layers.0.self_attn.rotary_emb.inv_freq': ['F32', [2]] },
    });
    const adapter = tinyAdapter('lora', factors(q0, 4, 4));
    const plan = await planOf(recipeOf(['base+lora']), base, adapter);
    const computed = plan.tensors.filter((t) => !t.copy).map((t) => t.name);
    expect(computed).toEqual([`${q0}.weight`]);
    expect(tensor(plan, 'model.norm.weight').copy).toMatchObject({
      folder: 'base',
      key: 'model.norm.weight',
    });

    const cast = await planOf(recipeOf(['base+lora'], { outDtype: 'float16' }), base, adapter);
    expect(tensor(cast, 'model.norm.weight')).not.toHaveProperty('copy');
    // A buffer is no weight: it keeps its dtype.
    expect(tensor(cast, 'model.layers.0.self_attn.rotary_emb.inv_freq')).toMatchObject({
      dtype: 'F32',
      copy: {},
    });
  });

  it('copies the base where every weight, density or λ is 0', async () => {
    const zero = [{ model: 'tuned', parameters: { weight: [{ filter: 'mlp', value: 1 }, { value: 0 }] } }];
    const folders = [tinyModel('base'), tinyModel('tuned')];
    const byWeight = await planOf(recipeOf([], { models: zero }), ...folders);
    expect(byWeight.tensors.filter((t) => !t.copy).map((t) => t.role.module)).toEqual([
      'mlp.up_proj',
      'mlp.up_proj',
    ]);
    for (const parameters of [{ density: 0 }, { lambda: 0 }]) {
      const plan = await planOf(recipeOf(['tuned'], { mergeMethod: 'ties', parameters }), ...folders);
      expect(plan.tensors.every((t) => t.copy?.folder === 'base')).toBe(true);
    }
  });

  it('copies the one model that counts in a weighted mean', async () => {
    const models = [
      { model: 'a', parameters: { weight: 0.3 } },
      { model: 'b', parameters: { weight: 0 } },
    ];
    const plan = await planOf(
      { mergeMethod: 'linear', models, parameters: {}, amalgam: {} },
      tinyModel('a'),
      tinyModel('b'),
    );
    expect(plan.tensors.every((t) => t.copy?.folder === 'a')).toBe(true);
    expect(plan.base).toBeUndefined();
  });

  it('takes config and tokenizer from the base also for a method without base, and the tokenizer from where it is told', async () => {
    const recipe: Recipe = { ...recipeOf(['a', 'b']), mergeMethod: 'linear', tokenizerSource: 'b' };
    const plan = await planOf(recipe, tinyModel('base'), tinyModel('a'), tinyModel('b'));
    expect(codes(plan.problems)).toEqual(['BaseIgnored']);
    expect(plan.contributors).toEqual(['a', 'b']);
    expect(plan.extras.find((e) => e.path === 'tokenizer.json')!.content).toEqual({
      folder: 'b',
      file: 'tokenizer.json',
    });
    expect(plan.inputs.map((i) => i.folder)).toEqual(['a', 'b']);
  });

  it('leaves a listed base out of a method on differences', async () => {
    const plan = await planOf(recipeOf(['base', 'tuned']), tinyModel('base'), tinyModel('tuned'));
    expect(codes(plan.problems)).toEqual(['BaseListed']);
    expect(plan.contributors).toEqual(['tuned']);
  });

  it('pairs checkpoints saved with and without the prefix of their family', async () => {
    const options = { config: { model_type: 'gpt2', hidden_size: undefined, n_embd: 4, n_layer: 1 } };
    const gpt2 = (path: string, prefix: string) =>
      memoryFolder(path, {
        'config.json': { ...options.config, tie_word_embeddings: true },
        'model.safetensors': safetensors({
          [`${prefix}wte.weight`]: ['F32', [8, 4]],
          [`${prefix}h.0.attn.c_attn.weight`]: ['F32', [4, 12]],
          [`${prefix}h.0.attn.bias`]: ['U8', [1, 1, 2, 2]],
          [`${prefix}ln_f.weight`]: ['F32', [4]],
        }),
        'tokenizer.json': '{"model":{"vocab":{}}}',
      });
    const plan = await planOf(recipeOf(['tuned']), gpt2('base', ''), gpt2('tuned', 'transformer.'));
    expect(plan.problems).toEqual([]);
    expect(plan.tensors.map((t) => t.name)).toEqual([
      'wte.weight',
      'h.0.attn.bias',
      'h.0.attn.c_attn.weight',
      'ln_f.weight',
    ]);
    expect(tensor(plan, 'h.0.attn.bias').copy).toMatchObject({ folder: 'base', dtype: 'U8' });
    expect(tensor(plan, 'wte.weight').models[0]!.view.origin.key).toBe('transformer.wte.weight');
  });

  it('counts the bytes of Hub files, each once, less what is in the cache', async () => {
    const onHub = (folder: ModelFolder): ModelFolder => ({
      ...folder,
      origin: { kind: 'hub', repo: folder.path, revision: 'main', commit: 'c'.repeat(40) },
      files: folder.files.map((f) =>
        f.path.endsWith('.safetensors') ? { ...f, sha256: `sha-${folder.path}` } : f,
      ),
    });
    const base = onHub(tinyModel('base'));
    const tuned = onHub(tinyModel('tuned'));
    const size = (folder: ModelFolder, path: string) => folder.files.find((f) => f.path === path)!.byteLength;
    const plan = await planOf(recipeOf(['tuned']), base, tuned);
    const weights = size(base, 'model.safetensors') + size(tuned, 'model.safetensors');
    expect(plan.bytesToDownload).toBe(weights + size(base, 'tokenizer.json'));
    const open = openerOf(base, tuned);
    const here = new Map([['sha-base', size(base, 'model.safetensors')]]);
    const cached = await makePlan(recipeOf(['tuned']), open, methodById, here);
    const left = size(tuned, 'model.safetensors') + size(base, 'tokenizer.json');
    expect(cached.bytesToDownload).toBe(left);
    const inPart = await makePlan(recipeOf(['tuned']), open, methodById, here.set('sha-tuned', 21));
    expect(inPart.bytesToDownload).toBe(left - 21);
    const metadata = new TextDecoder().decode(plan.shards[0]!.header);
    expect(metadata).toContain(
      String.raw`{\"base/model.safetensors\":\"sha-base\",\"tuned/model.safetensors\":\"sha-tuned\"}`,
    );
  });
});
