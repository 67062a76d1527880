import { describe, expect, it } from 'vitest';
import { inTensorOrder, isBuffer, splitLayer, tensorPlace, tensorRole } from './tensor-role';

describe('tensorRole', () => {
  // name, shape → layer, module, kind, place
  const cases: [string, number[], number | null, string, string, string][] = [
    ['model.embed_tokens.weight', [512, 64], null, 'embed_tokens', 'embedding', 'before'],
    ['model.layers.11.self_attn.q_proj.weight', [64, 64], 11, 'self_attn.q_proj', 'linear', 'layer'],
    ['model.layers.0.self_attn.q_proj.bias', [64], 0, 'self_attn.q_proj.bias', 'bias', 'layer'],
    ['model.layers.3.input_layernorm.weight', [64], 3, 'input_layernorm', 'norm', 'layer'],
    ['model.layers.3.self_attn.q_norm.weight', [16], 3, 'self_attn.q_norm', 'norm', 'layer'],
    [
      'model.layers.3.pre_feedforward_layernorm.weight',
      [64],
      3,
      'pre_feedforward_layernorm',
      'norm',
      'layer',
    ],
    ['model.layers.1.self_attn.qkv_proj.weight', [80, 48], 1, 'self_attn.qkv_proj', 'linear', 'layer'],
    ['model.norm.weight', [64], null, 'norm', 'norm', 'after'],
    ['model.norm.bias', [64], null, 'norm.bias', 'bias', 'after'],
    ['lm_head.weight', [512, 64], null, 'lm_head', 'head', 'after'],
    ['transformer.wte.weight', [131, 32], null, 'wte', 'embedding', 'before'],
    ['wpe.weight', [72, 32], null, 'wpe', 'embedding', 'before'],
    ['transformer.h.4.attn.c_attn.weight', [32, 96], 4, 'attn.c_attn', 'linear', 'layer'],
    ['h.4.ln_1.weight', [32], 4, 'ln_1', 'norm', 'layer'],
    ['transformer.ln_f.weight', [32], null, 'ln_f', 'norm', 'after'],
    ['h.0.attn.bias', [1, 1, 1024, 1024], 0, 'attn.bias', 'other', 'layer'],
    ['gpt_neox.embed_in.weight', [128, 48], null, 'embed_in', 'embedding', 'before'],
    [
      'gpt_neox.layers.1.attention.query_key_value.weight',
      [144, 48],
      1,
      'attention.query_key_value',
      'linear',
      'layer',
    ],
    ['gpt_neox.layers.1.attention.masked_bias', [], 1, 'attention.masked_bias', 'other', 'layer'],
    ['gpt_neox.final_layer_norm.weight', [48], null, 'final_layer_norm', 'norm', 'after'],
    ['embed_out.weight', [128, 48], null, 'embed_out', 'head', 'after'],
    ['transformer.word_embeddings.weight', [136, 40], null, 'word_embeddings', 'embedding', 'before'],
    [
      'transformer.word_embeddings_layernorm.weight',
      [40],
      null,
      'word_embeddings_layernorm',
      'norm',
      'before',
    ],
    ['transformer.h.0.self_attention.dense.weight', [40, 40], 0, 'self_attention.dense', 'linear', 'layer'],
    ['model.decoder.embed_positions.weight', [66, 40], null, 'embed_positions', 'embedding', 'before'],
    ['model.decoder.layers.0.fc1.weight', [88, 40], 0, 'fc1', 'linear', 'layer'],
    ['model.decoder.layers.0.final_layer_norm.weight', [40], 0, 'final_layer_norm', 'norm', 'layer'],
    ['model.decoder.final_layer_norm.weight', [40], null, 'final_layer_norm', 'norm', 'after'],
    ['model.decoder.project_out.weight', [24, 32], null, 'project_out', 'linear', 'after'],
    // Mixture of experts: the first number is the layer.
    [
      'model.layers.2.block_sparse_moe.experts.7.w1.weight',
      [8, 8],
      2,
      'block_sparse_moe.experts.7.w1',
      'linear',
      'layer',
    ],
    // No known family.
    ['gau_layers.1.norm.scale', [], 1, 'norm.scale', 'norm', 'layer'],
    ['gau_layers.0.gamma', [2, 128], 0, 'gamma', 'linear', 'layer'],
    ['encoder_start.weight', [256, 24], null, 'encoder_start', 'linear', 'before'],
    ['__proto__', [2], null, '__proto__', 'other', 'before'],
  ];
  it.each(cases)('%s', (name, shape, layer, module, kind, place) => {
    expect(tensorRole(name, shape)).toEqual({ layer, module, kind });
    expect(tensorPlace(name)).toBe(place);
  });

  it('takes no weight for a buffer', () => {
    for (const name of [
      'h.0.attn.c_attn.bias',
      'model.layers.0.self_attn.o_proj.bias',
      'h.0.mlp.c_fc.bias',
    ]) {
      expect(isBuffer(name)).toBe(false);
    }
    expect(isBuffer('model.layers.0.self_attn.rotary_emb.inv_freq')).toBe(true);
    expect(isBuffer('embeddings.position_ids')).toBe(true);
  });

  it('cuts a name at the first number', () => {
    expect(splitLayer('h.10.attn.c_attn.weight')).toEqual({
      stack: 'h.',
      index: 10,
      rest: 'attn.c_attn.weight',
    });
    expect(splitLayer('0.weight')).toEqual({ stack: '', index: 0, rest: 'weight' });
    expect(splitLayer('layer.12')).toBeNull();
    expect(splitLayer('text_encoder:0:down')).toBeNull();
  });
});

describe('inTensorOrder', () => {
  it('runs from the embedding through the layers to the head', () => {
    const ordered = [
      'model.embed_tokens.weight',
      'model.layers.0.input_layernorm.weight',
      'model.layers.2.mlp.experts.2.w1.weight',
      'model.layers.2.mlp.experts.10.w1.weight',
      'model.layers.2.mlp.up_proj.weight',
      'model.layers.10.mlp.up_proj.weight',
      'model.norm.weight',
      'lm_head.weight',
    ];
    const reversed = [...ordered].reverse().map((name) => ({ name }));
    expect(inTensorOrder(reversed).map(({ name }) => name)).toEqual(ordered);
  });
});
