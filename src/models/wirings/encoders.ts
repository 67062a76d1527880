/**
 * Wirings of encoders that fill in masked tokens (transformers: modeling_bert.py, modeling_roberta.py, modeling_distilbert.py,
 * modeling_modernbert.py). Defaults are those of the configuration classes.
 */
import { flag, or } from '../config-reader';
import { apart, attentionOf, fusedMlp, plainMlp, sizesOf, type Wiring } from '../wiring';

const activation = or('gelu', 'hidden_act');

/** Norms behind the sums; positions and the kind of text are added to the embedding. */
export const bert: Wiring = {
  masked: true,
  sizes: sizesOf('num_hidden_layers', 'hidden_size', 'num_attention_heads', 'intermediate_size'),
  norm: { kind: 'layer', bias: true, epsilon: or(1e-12, 'layer_norm_eps') },
  embedding: {
    norm: 'bert.embeddings.LayerNorm',
    positions: {
      tensor: 'bert.embeddings.position_embeddings.weight',
      offset: 0,
      count: or(512, 'max_position_embeddings'),
      types: {
        tensor: 'bert.embeddings.token_type_embeddings.weight',
        count: or(2, 'type_vocab_size'),
      },
    },
  },
  norms: { before: false, attentionIn: 'attention.output.LayerNorm', mlpIn: 'output.LayerNorm' },
  attention: attentionOf(
    apart('attention.self.query', 'attention.self.key', 'attention.self.value'),
    'attention.output.dense',
    true,
    'none',
  ),
  mlp: plainMlp(['intermediate.dense', 'output.dense'], true, activation),
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
      offset: { behind: or(1, 'pad_token_id') },
      count: or(512, 'max_position_embeddings'),
      types: {
        tensor: 'roberta.embeddings.token_type_embeddings.weight',
        count: or(2, 'type_vocab_size'),
      },
    },
  },
  head: {
    transform: {
      linear: 'lm_head.dense',
      bias: true,
      activation: or('gelu'),
      norm: 'lm_head.layer_norm',
    },
    bias: 'lm_head.bias',
  },
  unused: ['roberta.pooler.dense.weight', 'roberta.pooler.dense.bias', 'lm_head.decoder.bias'],
};

const distilActivation = or('gelu', 'activation');

/** BERT without kinds of text, under other names. */
export const distilbert: Wiring = {
  masked: true,
  sizes: sizesOf(
    ['n_layers', 'num_hidden_layers'],
    ['dim', 'hidden_size'],
    ['n_heads', 'num_attention_heads'],
    'hidden_dim',
  ),
  norm: { kind: 'layer', bias: true, epsilon: or(1e-12) },
  embedding: {
    norm: 'distilbert.embeddings.LayerNorm',
    positions: {
      tensor: 'distilbert.embeddings.position_embeddings.weight',
      offset: 0,
      count: or(512, 'max_position_embeddings'),
    },
  },
  norms: { before: false, attentionIn: 'sa_layer_norm', mlpIn: 'output_layer_norm' },
  attention: attentionOf(
    apart('attention.q_lin', 'attention.k_lin', 'attention.v_lin'),
    'attention.out_lin',
    true,
    'none',
  ),
  mlp: plainMlp(['ffn.lin1', 'ffn.lin2'], true, distilActivation),
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
    bias: flag('norm_bias', false),
    epsilon: or(1e-5, 'norm_eps'),
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
    ...attentionOf({ fused: 'attn.Wqkv', order: 'blocks' }, 'attn.Wo', flag('attention_bias', false), {
      theta: 160_000,
      local: or(10_000, 'local_rope_theta'),
    }),
    window: {
      size: or(128, 'local_attention'),
      layers: { orElse: { notMultiplesOf: or(3, 'global_attn_every_n_layers') } },
    },
  },
  mlp: fusedMlp(['mlp.Wi', 'mlp.Wo'], flag('mlp_bias', false), or('gelu', 'hidden_activation')),
  head: {
    transform: {
      linear: 'head.dense',
      bias: flag('classifier_bias', false),
      activation: or('gelu', 'classifier_activation'),
      norm: 'head.norm',
    },
    bias: 'decoder.bias',
  },
  fixed: [{ field: 'decoder_bias', value: true, otherwise: 'logits without a bias' }],
};
