/** Attention as a wiring has it. */
import type { Attention, HeadNorm } from './architecture';
import { needNumber, needSize, readFlag, readNumber, readSize, unsupported, wrong } from './config-reader';
import { type BlockContext, linear, makeNorm, pick, refuseScaledBias, vector } from './resolution-context';
import { yarnScoreFactor } from './resolved-positions';
import { alibiSlopes } from './rope';
import type { LatentWiring } from './wiring';

/** @throws AmalgamError `ConfigInvalid`, `ArchitectureUnsupported` */
export function resolveAttention(
  context: BlockContext,
  rope: Attention['rope'],
  window: number | undefined,
): Attention {
  const { config, wiring, hidden, prefix, heads } = context;
  const { attention } = wiring;
  const softcap = attention.softcap && readNumber(config, attention.softcap);
  const widths = attention.latent
    ? latentWidths(context, attention.latent)
    : { headDim: context.headDim, valueDim: context.headDim };
  return {
    kind: 'attention',
    heads,
    keyValueHeads: attention.latent ? heads : context.keyValueHeads,
    ...widths,
    ...(attention.latent ? resolveLatent(context, attention.latent) : resolveProjections(context)),
    ...headNorms(context, rope !== undefined),
    ...(attention.valueNorm &&
      context.keysOf === undefined && {
        valueNorm: { ...makeNorm(context, '', widths.valueDim), kind: 'rms' as const, weight: 1 },
      }),
    ...temperature(context, rope),
    ...pick('rope', rope),
    ...(attention.position === 'alibi' && { alibi: alibiSlopes(heads) }),
    ...(attention.sinks !== undefined && { sinks: vector(prefix + attention.sinks, heads) }),
    scale: attentionScale(context, widths.headDim),
    ...(typeof softcap === 'number' && { softcap }),
    ...(wiring.masked
      ? { bothWays: pick('reach', window && Math.floor(window / 2)) }
      : pick('window', window)),
    ...(attention.chunk && rope && pick('chunk', readSize(config, attention.chunk))),
    ...pick('keysOf', context.keysOf),
    output: linear(context, prefix + attention.output, heads * widths.valueDim, hidden, attention.outputBias),
  };
}

type Projected = Pick<Attention, 'projections' | 'layout' | 'gate' | 'latent'>;

function resolveProjections(context: BlockContext): Projected {
  const { wiring, prefix, hidden, heads, keyValueHeads, headDim } = context;
  const { projections, bias, gated, inputFactor, keyFactor } = wiring.attention;
  const input = inputFactor ? needNumber(context.config, inputFactor) : 1;
  refuseScaledBias(context, bias, input);
  const key = keyFactor ? needNumber(context.config, keyFactor) : 1;
  const [queries, keys] = [heads * headDim * (gated ? 2 : 1), keyValueHeads * headDim];
  const side = {
    query: { begin: 0, stride: gated ? 2 * headDim : headDim },
    key: { begin: queries, stride: headDim },
    value: { begin: queries + keys, stride: headDim },
  };
  if (!('fused' in projections)) {
    if (context.keysOf !== undefined || context.valuesAreKeys) {
      const own = [linear(context, prefix + projections.query, hidden, queries, bias, input)];
      if (context.keysOf === undefined)
        own.push(linear(context, prefix + projections.key, hidden, keys, bias));
      return { projections: own, layout: { ...side, value: side.key } };
    }
    return {
      projections: [
        linear(context, prefix + projections.query, hidden, queries, bias, input),
        linear(context, prefix + projections.key, hidden, keys, bias, input * key),
        linear(context, prefix + projections.value, hidden, keys, bias, input),
      ],
      layout: side,
      ...(gated && { gate: { begin: headDim, stride: 2 * headDim } }),
    };
  }
  const { fused, order } = projections;
  const layer = linear(context, prefix + fused, hidden, queries + 2 * keys, bias);
  if (order === 'blocks') return { projections: [layer], layout: side };
  if (order === 'per_head' && heads !== keyValueHeads)
    throw unsupported(`${prefix}${fused} shares keys between heads.`);
  return { projections: [layer], layout: groupedLayout(order, heads, keyValueHeads, headDim) };
}

/** Heads in groups, the kinds one behind the other in each. */
function groupedLayout(
  order: 'per_head' | 'per_group' | 'quarters',
  heads: number,
  keyValueHeads: number,
  headDim: number,
): Attention['layout'] {
  const stride = headDim;
  if (order === 'quarters') {
    const part = heads / 4;
    const group = { heads: part, stride: 3 * part * headDim };
    const at = (i: number) => ({ begin: i * part * headDim, stride, group });
    return { query: at(0), value: at(1), key: at(2) };
  }
  const share = heads / keyValueHeads;
  const width = (share + 2) * headDim;
  return {
    query:
      share === 1
        ? { begin: 0, stride: width }
        : { begin: 0, stride, group: { heads: share, stride: width } },
    key: { begin: share * headDim, stride: width },
    value: { begin: (share + 1) * headDim, stride: width },
  };
}

function latentWidths({ config, hidden, heads }: BlockContext, { plain, rotated, value }: LatentWiring) {
  return {
    headDim: needSize(config, plain) + needSize(config, rotated),
    valueDim: readSize(config, value) ?? hidden / heads,
  };
}

function resolveLatent(context: BlockContext, latent: LatentWiring): Projected {
  const { config, wiring, prefix, hidden, heads } = context;
  const { headDim, valueDim } = latentWidths(context, latent);
  const { modules } = latent;
  const plain = needSize(config, latent.plain);
  const queryRank = readSize(config, latent.queryRank);
  const rank = needSize(config, latent.keyValueRank);
  const { bias } = wiring.attention;
  const queries = queryRank ?? heads * headDim;
  const made = (name: string, inputs: number, outputs: number, biased: typeof bias = false) =>
    linear(context, prefix + name, inputs, outputs, biased);
  const nothing = { begin: 0, stride: 0 };
  return {
    projections: [
      queryRank === undefined
        ? made(modules.query, hidden, queries)
        : made(modules.queryNarrow, hidden, queries, bias),
      made(modules.keyValueNarrow, hidden, rank + headDim - plain, bias),
    ],
    layout: { query: nothing, key: nothing, value: nothing },
    latent: {
      ...(queryRank !== undefined && {
        query: {
          norm: makeNorm(context, prefix + modules.queryNorm, queryRank),
          expand: made(modules.queryWide, queryRank, heads * headDim),
        },
      }),
      keyValue: {
        begin: queries,
        norm: makeNorm(context, prefix + modules.keyValueNorm, rank),
        expand: made(modules.keyValueWide, rank, heads * (plain + valueDim)),
      },
      rotated: { begin: queries + rank, width: headDim - plain },
    },
  };
}

/** Llama 4: queries of layers without rotation grow with the position. */
function temperature(
  { config, wiring, headDim }: BlockContext,
  rope: Attention['rope'],
): Pick<Attention, 'queryRope'> {
  const { temperature: field } = wiring.attention;
  if (!field || rope || !readFlag(config, field.when)) return {};
  const [floor, size] = [needNumber(config, field.floor), needNumber(config, field.size)];
  return { queryRope: { theta: 1, dims: headDim, scaling: { type: 'temperature', floor, size } } };
}

function headNorms(
  context: BlockContext,
  rotates: boolean,
): { queryNorm?: HeadNorm; keyNorm?: HeadNorm; normAfterRope?: true } {
  const { config, wiring, prefix, heads, keyValueHeads, headDim } = context;
  const { headNorm } = wiring.attention;
  if (!headNorm) return {};
  if (headNorm.weightless) {
    const { when, epsilon } = headNorm.weightless;
    if (!rotates || !readFlag(config, when)) return {};
    const norm: HeadNorm = {
      kind: 'rms',
      weight: 1,
      epsilon: needNumber(config, epsilon),
      width: headDim,
    };
    return { queryNorm: norm, keyNorm: { ...norm }, normAfterRope: true };
  }
  const width = (count: number) => (headNorm.over === 'head' ? headDim : count * headDim);
  return {
    queryNorm: makeNorm(context, prefix + headNorm.query, width(heads)),
    ...(context.keysOf === undefined && {
      keyNorm: makeNorm(context, prefix + headNorm.key, width(keyValueHeads)),
    }),
    ...(headNorm.afterRope && { normAfterRope: true }),
  };
}

function attentionScale({ config, wiring, index }: BlockContext, headDim: number): number {
  const { scale, scaleSwitch, inverseLayerScale, yarnScores } = wiring.attention;
  if (typeof scale === 'number') return scale;
  if (typeof scale === 'object' && 'factor' in scale) return needNumber(config, scale.factor);
  const under = scale === 'head_dim' ? headDim : needNumber(config, scale.root);
  if (!(under > 0)) throw wrong(config, 'query_pre_attn_scalar', 'is not positive');
  const root = readFlag(config, scaleSwitch ?? true) ? under ** -0.5 : 1;
  const base = yarnScores ? root * yarnScoreFactor(config) : root;
  return readFlag(config, inverseLayerScale ?? false) ? base / (index + 1) : base;
}
