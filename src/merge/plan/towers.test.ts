import { describe, expect, test } from 'vitest';
import { mergeInNode } from '../../../e2e/merge-in-node';
import type { Recipe } from '../../formats/recipe';
import { parseRecipe } from '../../formats/recipe-yaml';
import { memoryFolder, openerOf, type Shapes, safetensors } from '../../inputs/memory-models.test.support';
import { methodById } from '../methods';
import { makePlan } from './recipe-plan';

/** A LLaVA of two layers in each tower, all values the float of four bytes `fill`. */
function llava(path: string, fill: number) {
  const shapes: Shapes = {
    'multi_modal_projector.linear_1.weight': ['F32', [4, 4]],
    'language_model.model.embed_tokens.weight': ['F32', [8, 4]],
    'language_model.model.norm.weight': ['F32', [4]],
    'language_model.lm_head.weight': ['F32', [8, 4]],
  };
  for (const i of [0, 1]) {
    shapes[`vision_tower.vision_model.encoder.layers.${i}.self_attn.q_proj.weight`] = ['F32', [4, 4]];
    shapes[`language_model.model.layers.${i}.self_attn.q_proj.weight`] = ['F32', [4, 4]];
  }
  const text_config = { model_type: 'llama', hidden_size: 4, num_hidden_layers: 2, vocab_size: 8 };
  return memoryFolder(path, {
    'config.json': { model_type: 'llava', text_config, vision_config: { hidden_size: 4 } },
    'model.safetensors': safetensors(shapes, fill),
    'tokenizer.json': '{"model":{"vocab":{}}}',
  });
}

/** Its text tower by itself. */
function text(path: string, fill: number, change: Record<string, unknown> = {}) {
  const shapes: Shapes = {
    'model.embed_tokens.weight': ['F32', [8, 4]],
    'model.norm.weight': ['F32', [4]],
    'lm_head.weight': ['F32', [8, 4]],
    'model.layers.0.self_attn.q_proj.weight': ['F32', [4, 4]],
    'model.layers.1.self_attn.q_proj.weight': ['F32', [4, 4]],
  };
  const config = {
    model_type: 'llama',
    hidden_size: 4,
    num_hidden_layers: 2,
    vocab_size: 8,
    tie_word_embeddings: false,
  };
  return memoryFolder(path, {
    'config.json': { ...config, ...change },
    'model.safetensors': safetensors(shapes, fill),
    'tokenizer.json': '{"model":{"vocab":{}}}',
  });
}

const floatOf = (fill: number) => new DataView(new Uint8Array(4).fill(fill).buffer).getFloat32(0);
const [A, B, C] = [0x3f, 0x3e, 0x40].map(floatOf) as [number, number, number];
const folders = {
  base: llava('base', 0x3e),
  a: llava('a', 0x3f),
  t: text('t', 0x40),
  other: text('other', 0x40, { model_type: 'qwen2' }),
};
const firsts = async (recipe: string) => {
  const { tensors } = await mergeInNode(recipe, '.', folders);
  return Object.fromEntries(
    [...tensors].map(([name, { values }]) => [
      name.replace(/.*?(vision|projector|layers|embed|norm|lm_head).*/, '$1'),
      values[0]!,
    ]),
  );
};
const problems = async (recipe: string) => {
  const plan = await makePlan(
    parseRecipe(recipe).recipe as Recipe,
    openerOf(...Object.values(folders)),
    methodById,
  );
  return plan.problems;
};

describe('multimodal models by tower', () => {
  test('each tower has the weights of its module', async () => {
    const found = await firsts(`
merge_method: linear
modules:
  text_decoder: { models: [{ model: base, parameters: { weight: 0.25 } }, { model: a, parameters: { weight: 0.75 } }] }
  vision_tower: { models: [{ model: a, parameters: { weight: 1 } }] }
  multi_modal_projector: { models: [{ model: base, parameters: { weight: 1 } }] }
`);
    expect(found.layers).toBeCloseTo(0.25 * B + 0.75 * A, 6);
    expect(found.vision).toBeCloseTo(A, 6);
    expect(found.projector).toBeCloseTo(B, 6);
  });

  test('a tower is named in all the ways there are, and only one that no model has is warned of', async () => {
    const recipe = (module: string) => `
merge_method: linear
modules:
  text_decoder: { models: [{ model: base, parameters: { weight: 1 } }] }
  ${module}: { models: [{ model: a, parameters: { weight: 1 } }] }
`;
    const codes = async (module: string) => (await problems(recipe(module))).map(({ code }) => code);
    expect(await codes('vision_tower')).not.toContain('PatternUnused');
    expect(await codes('audio_tower')).toContain('PatternUnused');
  });
});

describe('a text model into the text tower of a multimodal one', () => {
  const arithmetic = `
merge_method: task_arithmetic
base_model: base
models: [{ model: t, parameters: { weight: 0.5 } }, { model: a, parameters: { weight: 0.5 } }]
`;
  test('changes the text tower, and no other', async () => {
    const found = await firsts(arithmetic);
    expect(found.layers).toBeCloseTo(B + 0.5 * (C - B) + 0.5 * (A - B), 5);
    expect(found.lm_head).toBeCloseTo(B + 0.5 * (C - B) + 0.5 * (A - B), 5);
    // the multimodal one changes these alone
    expect(found.vision).toBeCloseTo(B + 0.5 * (A - B), 6);
    const alone = await firsts(
      'merge_method: task_arithmetic\nbase_model: base\nmodels: [{ model: t, parameters: { weight: 1 } }]\n',
    );
    expect(alone).toMatchObject({ vision: B, projector: B });
    expect(alone.layers).toBeCloseTo(C, 6);
    expect((await problems(arithmetic)).filter(({ severity }) => severity !== 'note')).toEqual([]);
    expect((await problems(arithmetic)).find(({ code }) => code === 'TextTowerAlone')?.tensors).toHaveLength(
      3,
    );
  });

  test('needs a base whose other towers stay; another kind of text model does not fit', async () => {
    const linear =
      'merge_method: linear\nmodels: [{ model: base, parameters: { weight: 1 } }, { model: t, parameters: { weight: 1 } }]\n';
    expect((await problems(linear)).map(({ code }) => code)).toContain('NoBaseToKeep');
    const found = await firsts(`${linear}base_model: base\n`);
    expect(found.vision).toBe(B);
    expect(found.layers).toBeCloseTo((B + C) / 2, 6);
    const other = arithmetic.replace('model: t', 'model: other');
    expect((await problems(other)).map(({ code }) => code)).toContain('ArchitectureMismatch');
  });
});
