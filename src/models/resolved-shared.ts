/** The transformer that layers of Zamba 2 share, and its updates for each of them. */
import type { Linear, Shared } from './architecture';
import { needSize, readFlag, wrong } from './config-reader';
import { type BlockContext, linear, makeNorm } from './resolution-context';
import { resolveAttention } from './resolved-attention';
import { numbersAt } from './resolved-experts';
import { listed } from './resolved-mixers';
import { resolveMlp } from './resolved-mlp';
import { resolveRope } from './resolved-positions';
import type { MixerMaker } from './wiring';

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
