import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { goldenFolder } from '../../e2e/goldens';
import { parseModelConfig } from '../formats/model-config';
import { partOf } from './architecture';
import { depthConfig, linearNames } from './depth';
import { resolveArchitecture } from './resolution';

const FOLDER = goldenFolder('forward');
const read = (name: string, file = 'config.json') =>
  parseModelConfig(readFileSync(`${FOLDER}/${name}/${file}`, 'utf8'), file);
/** A config with other members; undefined removes one. */
const changed = (name: string, changes: Record<string, unknown>, file?: string) => {
  const json = { ...(JSON.parse(read(name, file).text) as object), ...changes };
  return parseModelConfig(JSON.stringify(json), 'config.json');
};
const json = (text: string) => JSON.parse(text) as Record<string, unknown>;
const NAMES = [
  ...['bloom', 'gemma', 'gemma2', 'gemma3', 'gemma3_linear', 'gpt2', 'gpt_neox', 'gpt_neox_seq', 'granite'],
  ...['llama', 'llama_rope3_tied', 'mistral', 'olmo2', 'opt', 'opt_postnorm_proj', 'phi3', 'qwen2', 'qwen3'],
  ...['smollm3', 'stablelm'],
];

describe('depthConfig', () => {
  const files = NAMES.flatMap((name) =>
    /^(?:bloom|gpt2|opt)/.test(name)
      ? [[name, 'config.json'] as const]
      : [[name, 'config.json'] as const, [name, 'config.legacy.json'] as const],
  );
  it.each(files)('%s, %s: every layer keeps its kind when the first is gone', (name, file) => {
    const config = read(name, file);
    const before = resolveArchitecture(config);
    const order = before.blocks.map((_, i) => i).slice(1);
    const { architecture, text } = depthConfig(config, order);
    expect(architecture.blocks).toHaveLength(order.length);
    for (const [i, layer] of order.entries()) {
      const { window, rope, scale, alibi } = partOf(architecture.blocks[i]!, 'attention')!;
      const old = partOf(before.blocks[layer]!, 'attention')!;
      expect({ window, rope, scale, alibi }).toEqual({
        window: old.window,
        rope: old.rope,
        scale: old.scale,
        alibi: old.alibi,
      });
    }
    for (const [key, value] of Object.entries(json(text))) {
      if (/^(?:num_hidden_layers|n_layer|num_layers)$/.test(key)) expect(value, key).toBe(order.length);
      if (Array.isArray(value) && key.includes('layer')) expect(value, key).toHaveLength(order.length);
    }
  });

  it('writes the kinds of layers out where they followed from the index', () => {
    // transformers: Gemma 2 has windows on the even layers, Gemma 3 on all but every n-th
    const gemma2 = depthConfig(read('gemma2', 'config.legacy.json'), [1, 2]);
    expect(json(gemma2.text).layer_types).toEqual(['full_attention', 'sliding_attention']);
    expect(gemma2.spelledOut).toEqual(['layer_types']);
    const gemma3 = depthConfig(read('gemma3', 'config.legacy.json'), [0, 2]);
    expect(json(gemma3.text).layer_types).toEqual(['sliding_attention', 'full_attention']);
    const smollm = depthConfig(changed('smollm3', { no_rope_layers: undefined }), [0, 2]);
    expect(json(smollm.text).no_rope_layers).toEqual([1, 1]);
    expect(depthConfig(read('llama'), [1]).spelledOut).toEqual([]);
  });

  it('cuts lists that are there, entry by entry', () => {
    expect(json(depthConfig(read('gemma3'), [1, 2]).text).layer_types).toEqual([
      'sliding_attention',
      'full_attention',
    ]);
    expect(json(depthConfig(read('smollm3'), [0, 1]).text).no_rope_layers).toEqual([1, 0]);
  });

  it('moves the layer from which on windows apply', () => {
    const config = changed(
      'qwen2',
      { num_hidden_layers: 5, max_window_layers: 3, use_sliding_window: true, sliding_window: 7 },
      'config.legacy.json',
    );
    const { text, architecture } = depthConfig(config, [0, 2, 4]);
    expect(json(text)).toMatchObject({
      num_hidden_layers: 3,
      max_window_layers: 2,
      layer_types: ['full_attention', 'full_attention', 'sliding_attention'],
    });
    expect(architecture.blocks.map((block) => partOf(block, 'attention')!.window)).toEqual([
      undefined,
      undefined,
      7,
    ]);
    expect(json(depthConfig(read('qwen2', 'config.legacy.json'), [1]).text).max_window_layers).toBe(1);
  });

  it('sets every spelling of the number of layers and leaves all other fields as they are written', () => {
    const config = changed('gpt2', { num_hidden_layers: 2 });
    const { text } = depthConfig(config, [1]);
    expect(json(text)).toEqual({ ...json(config.text), n_layer: 1, num_hidden_layers: 1 });
  });

  it('refuses what depends on the index and no config can say', () => {
    expect(() => depthConfig(read('gpt2_inv_layer'), [0, 2])).toThrow(
      /score scale of layer 2 of this gpt2 follows from its index, which would be 1/,
    );
    expect(depthConfig(read('gpt2_inv_layer'), [0, 1]).architecture.blocks).toHaveLength(2);
  });

  it('refuses an unknown architecture by name', () => {
    expect(() => depthConfig(changed('llama', { model_type: 'rwkv' }), [0])).toThrow(
      expect.objectContaining({
        code: 'ArchitectureUnsupported',
        message: expect.stringContaining('rwkv'),
      }),
    );
  });
});

describe('linearNames', () => {
  it('are those of attention and MLP and no norms, in every family', () => {
    for (const name of [...NAMES, 'gpt2_inv_layer']) {
      const names = [...linearNames(resolveArchitecture(read(name)).blocks[0]!)];
      expect(names.length, name).toBeGreaterThan(3);
      for (const rest of names) expect(rest, name).not.toMatch(/norm|ln_/);
    }
    const { blocks } = resolveArchitecture(read('gpt2'));
    expect([...linearNames(blocks[1]!)]).toEqual([
      'attn.c_attn.weight',
      'attn.c_attn.bias',
      'attn.c_proj.weight',
      'attn.c_proj.bias',
      'mlp.c_fc.weight',
      'mlp.c_fc.bias',
      'mlp.c_proj.weight',
      'mlp.c_proj.bias',
    ]);
  });
});
