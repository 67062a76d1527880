/** Makers of mixers around a convolution: LFM2's, and Griffin's recurrent block. */
import type { Linear, Shared, Vector } from './architecture';
import { at, needSize, or, readFlag, readNumber, readSize, wrong } from './config-reader';
import { type BlockContext, linear, makeNorm, vector } from './resolution-context';
import { resolveAttention } from './resolved-attention';
import { numbersAt, resolveMlp } from './resolved-experts';
import { convolution, listed } from './resolved-mixers';
import { resolveRope } from './resolved-positions';
import type { MixerMaker } from './wiring';

/** LFM2's short convolution. */
export const shortConvolution: MixerMaker = (block) => {
  const { config, prefix, hidden } = block;
  const bias = readFlag(config, { field: 'conv_bias', orElse: false });
  const taps = needSize(config, or(3, 'conv_L_cache'));
  return [
    {
      name: 'conv',
      part: {
        kind: 'conv',
        projections: [linear(block, `${prefix}conv.in_proj`, hidden, 3 * hidden, bias)],
        conv: convolution(block, [['conv.conv', hidden]], taps, bias, false),
        output: linear(block, `${prefix}conv.out_proj`, hidden, hidden, bias),
      },
    },
  ];
};

/** Griffin's recurrent block. */
export const recurrentUnit: MixerMaker = (block) => {
  const { config, prefix, hidden, heads } = block;
  const width = readSize(config, at('lru_width')) ?? hidden;
  const of = width / heads;
  const name = `${prefix}temporal_block.`;
  const pair = (what: string, ...shape: number[]): Vector => ({
    tensors: ['input', 'recurrent'].map((gate) => ({
      name: `${name}rg_lru.${gate}_gate_${what}`,
      shape: [heads, of, ...shape],
    })),
  });
  const layer = (module: string, inputs: number, outputs: number) =>
    linear(block, name + module, inputs, outputs, true);
  return [
    {
      name: 'lru',
      part: {
        kind: 'lru',
        projections: [layer('linear_y', hidden, width), layer('linear_x', hidden, width)],
        conv: convolution(
          block,
          [['temporal_block.conv_1d', width]],
          readNumber(config, or(4, 'conv1d_width')) ?? 4,
          true,
          false,
        ),
        width,
        block: of,
        gates: pair('weight', of),
        biases: pair('bias'),
        rates: vector(`${name}rg_lru.recurrent_param`, width),
        output: layer('linear_out', width, hidden),
      },
    },
  ];
};

// The transformer that layers of Zamba 2 share, and its updates for each of them.

/**
 * A mixer with the shared transformer ahead of it. Block k of `num_mem_blocks` is that of every k-th such layer and stored with the
 * first of them.
 */
export function sharedAhead(mixer: MixerMaker): MixerMaker {
  return (block, attention) =>
    mixer(block, attention).map((branch) => ({ ...branch, ahead: sharedPart(block) }));
}

function sharedPart(block: BlockContext): Shared {
  const { config, hidden, index, layers, family, prefix } = block;
  const kindOf = listed('layers_block_type', 'mamba');
  const all = Array.from({ length: layers }, (_, layer) => layer);
  const users = numbersAt(config, 'hybrid_layer_ids') ?? all.filter((l) => kindOf(config, l) === 'hybrid');
  const turn = users.indexOf(index);
  const home = users[turn % needSize(config, { fields: ['num_mem_blocks'], orElse: 1 })];
  if (home === undefined) throw wrong(config, 'hybrid_layer_ids', `does not name layer ${index}`);
  const name = `${family.stack}${home}.shared_transformer.`;
  const inside: BlockContext = { ...block, prefix: name };
  const wide = 2 * hidden;
  const rope = readFlag(config, { field: 'use_mem_rope', orElse: false })
    ? resolveRope(config, { theta: 10_000 }, block.headDim, false)
    : undefined;
  const attention = resolveAttention({ ...inside, hidden: wide }, rope, undefined);
  const mlp = resolveMlp(inside);
  const rank = () => needSize(config, { fields: ['adapter_rank'] });
  const updated = (layer: Linear, list: string): Linear => ({
    ...layer,
    update: {
      down: linear(block, `${name}${list}.${turn}.0`, layer.inputs, rank(), false),
      up: linear(block, `${name}${list}.${turn}.1`, rank(), layer.outputs, false),
    },
  });
  const hasUpdates = readFlag(config, { field: 'use_shared_attention_adapter', orElse: false });
  const lists = ['q', 'k', 'v'].map((kind) => `self_attn.linear_${kind}_adapter_list`);
  return {
    kind: 'shared',
    norm: makeNorm(block, `${name}input_layernorm`, wide),
    attention: {
      ...attention,
      projections: attention.projections.map((layer, i) => (hasUpdates ? updated(layer, lists[i]!) : layer)),
      scale: (block.headDim / 2) ** -0.5,
      output: linear(block, `${name}self_attn.o_proj`, block.heads * block.headDim, hidden, false),
    },
    mlpIn: makeNorm(block, `${name}pre_ff_layernorm`, hidden),
    mlp: {
      ...mlp,
      projections: mlp.projections.map((layer) => updated(layer, 'feed_forward.gate_up_proj_adapter_list')),
    },
    output: linear(block, `${prefix}linear`, hidden, hidden, false),
  };
}
