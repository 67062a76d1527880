/**
 * Wirings of encoders that fill in masked tokens (transformers: modeling_bert.py, modeling_roberta.py, modeling_distilbert.py,
 * modeling_modernbert.py). Defaults are those of the configuration classes.
 */
import type { Wiring } from '../wiring';

const activation = { fields: ['hidden_act'], orElse: 'gelu' };

/** Norms behind the sums; positions and the kind of text are added to the embedding. */
export const bert: Wiring = {
  masked: true,
  sizes: {
    layers: { fields: ['num_hidden_layers'] },
    hidden: { fields: ['hidden_size'] },
    heads: { fields: ['num_attention_heads'] },
    inner: { fields: ['intermediate_size'] },
  },
  norm: { kind: 'layer', bias: true, epsilon: { fields: ['layer_norm_eps'], orElse: 1e-12 } },
  embedding: {
    norm: 'bert.embeddings.LayerNorm',
    positions: {
      tensor: 'bert.embeddings.position_embeddings.weight',
      offset: 0,
      count: { fields: ['max_position_embeddings'], orElse: 512 },
      types: {
        tensor: 'bert.embeddings.token_type_embeddings.weight',
        count: { fields: ['type_vocab_size'], orElse: 2 },
      },
    },
  },
  norms: { before: false, attentionIn: 'attention.output.LayerNorm', mlpIn: 'output.LayerNorm' },
  attention: {
    projections: {
      query: 'attention.self.query',
      key: 'attention.self.key',
      value: 'attention.self.value',
    },
    bias: true,
    output: 'attention.output.dense',
    outputBias: true,
    scale: 'head_dim',
    position: 'none',
  },
  mlp: { plain: true, up: 'intermediate.dense', down: 'output.dense', bias: true, activation },
  head: {
    transform: {
      linear: 'cls.predictions.transform.dense',
      bias: true,
      activation,
      norm: 'cls.predictions.transform.LayerNorm',
    },
    bias: 'cls.predictions.bias',
  },
  unused: [
    'bert.pooler.dense.weight',
    'bert.pooler.dense.bias',
    'cls.seq_relationship.weight',
    'cls.seq_relationship.bias',
    'cls.predictions.decoder.bias',
  ],
  fixed: [
    { field: 'is_decoder', value: false, otherwise: 'a decoder' },
    { field: 'position_embedding_type', value: 'absolute', otherwise: 'positions of another kind' },
  ],
};

/** BERT whose positions are counted from behind the padding token's; the head's activation is always GELU. */
export const roberta: Wiring = {
  ...bert,
  embedding: {
    norm: 'roberta.embeddings.LayerNorm',
    positions: {
      tensor: 'roberta.embeddings.position_embeddings.weight',
      offset: { behind: { fields: ['pad_token_id'], orElse: 1 } },
      count: { fields: ['max_position_embeddings'], orElse: 512 },
      types: {
        tensor: 'roberta.embeddings.token_type_embeddings.weight',
        count: { fields: ['type_vocab_size'], orElse: 2 },
      },
    },
  },
  head: {
    transform: {
      linear: 'lm_head.dense',
      bias: true,
      activation: { fields: [], orElse: 'gelu' },
      norm: 'lm_head.layer_norm',
    },
    bias: 'lm_head.bias',
  },
  unused: ['roberta.pooler.dense.weight', 'roberta.pooler.dense.bias', 'lm_head.decoder.bias'],
};

const distilActivation = { fields: ['activation'], orElse: 'gelu' };

/** BERT without kinds of text, under other names. */
export const distilbert: Wiring = {
  masked: true,
  sizes: {
    layers: { fields: ['n_layers', 'num_hidden_layers'] },
    hidden: { fields: ['dim', 'hidden_size'] },
    heads: { fields: ['n_heads', 'num_attention_heads'] },
    inner: { fields: ['hidden_dim'] },
  },
  norm: { kind: 'layer', bias: true, epsilon: { fields: [], orElse: 1e-12 } },
  embedding: {
    norm: 'distilbert.embeddings.LayerNorm',
    positions: {
      tensor: 'distilbert.embeddings.position_embeddings.weight',
      offset: 0,
      count: { fields: ['max_position_embeddings'], orElse: 512 },
    },
  },
  norms: { before: false, attentionIn: 'sa_layer_norm', mlpIn: 'output_layer_norm' },
  attention: {
    projections: { query: 'attention.q_lin', key: 'attention.k_lin', value: 'attention.v_lin' },
    bias: true,
    output: 'attention.out_lin',
    outputBias: true,
    scale: 'head_dim',
    position: 'none',
  },
  mlp: { plain: true, up: 'ffn.lin1', down: 'ffn.lin2', bias: true, activation: distilActivation },
  head: {
    transform: {
      linear: 'vocab_transform',
      bias: true,
      activation: distilActivation,
      norm: 'vocab_layer_norm',
    },
    bias: 'vocab_projector.bias',
  },
};

/** Rotary positions, gated MLPs, norms ahead, and two layers of three that see a window on both sides. */
export const modernbert: Wiring = {
  masked: true,
  sizes: bert.sizes,
  norm: {
    kind: 'layer',
    bias: { field: 'norm_bias', orElse: false },
    epsilon: { fields: ['norm_eps'], orElse: 1e-5 },
  },
  embedding: { norm: 'model.embeddings.norm' },
  norms: { attentionIn: 'attn_norm', mlpIn: 'mlp_norm', final: 'model.final_norm' },
  // the embedding is normed already
  mixers: {
    of: (_, layer) => (layer === 0 ? 'first' : 'attention'),
    kinds: {},
    norms: { first: { attentionIn: undefined } },
  },
  attention: {
    projections: { fused: 'attn.Wqkv', order: 'blocks' },
    bias: { field: 'attention_bias', orElse: false },
    output: 'attn.Wo',
    outputBias: { field: 'attention_bias', orElse: false },
    scale: 'head_dim',
    position: { theta: 160_000, local: { fields: ['local_rope_theta'], orElse: 10_000 } },
    window: {
      size: { fields: ['local_attention'], orElse: 128 },
      layers: { orElse: { notMultiplesOf: { fields: ['global_attn_every_n_layers'], orElse: 3 } } },
    },
  },
  mlp: {
    fusedGate: true,
    up: 'mlp.Wi',
    down: 'mlp.Wo',
    bias: { field: 'mlp_bias', orElse: false },
    activation: { fields: ['hidden_activation'], orElse: 'gelu' },
  },
  head: {
    transform: {
      linear: 'head.dense',
      bias: { field: 'classifier_bias', orElse: false },
      activation: { fields: ['classifier_activation'], orElse: 'gelu' },
      norm: 'head.norm',
    },
    bias: 'decoder.bias',
  },
  fixed: [{ field: 'decoder_bias', value: true, otherwise: 'logits without a bias' }],
};
