/** Wiring + config → architecture: every number and every name a forward pass needs. */
import { AmalgamError } from '../errors';
import { isSet } from '../formats/json-fields';
import { MAX_LAYERS } from '../formats/model-config';
import { displayName } from '../formats/names';
import type { Activation, Architecture, Attention, Block, HeadNorm, Linear, Mlp, Norm } from './architecture';
import {
  type ConfigFile,
  needNumber,
  needSize,
  readFlag,
  readNumber,
  readSize,
  readText,
  unsupported,
  wrong,
} from './config-reader';
import { familyOf } from './families';
import type { Family } from './family';
import { layersWithRope, layerWindows, resolveRope } from './resolve-positions';
import { alibiSlopes } from './rope';
import type { ActivationField, FlagField, Wiring } from './wiring';

/** Names of transformers' activations (activations.py) that are the same function. */
const ACTIVATIONS: ReadonlyMap<string, Activation> = new Map([
  ['silu', 'silu'],
  ['swish', 'silu'],
  ['gelu', 'gelu_erf'],
  ['gelu_python', 'gelu_erf'],
  ['gelu_new', 'gelu_tanh'],
  ['gelu_fast', 'gelu_tanh'],
  ['gelu_pytorch_tanh', 'gelu_tanh'],
  ['relu', 'relu'],
  // no name of transformers: modeling_bloom.py has it written out
  ['gelu_bloom', 'gelu_bloom'],
]);

/** The resolved sizes, and what every part needs to read more of the config. */
interface Context {
  config: ConfigFile;
  family: Family;
  wiring: Wiring;
  layers: number;
  hidden: number;
  heads: number;
  keyValueHeads: number;
  headDim: number;
  inner: number;
}

/**
 * The architecture a config describes, in its old and its new spelling.
 *
 * @param config parsed config.json (`parseModelConfig`)
 * @throws AmalgamError `ArchitectureUnsupported` (unknown `model_type`, quantised weights, an option no wiring covers),
 *   `ConfigInvalid` (a field is missing or of the wrong type)
 */
export function resolveArchitecture(config: ConfigFile & { modelType?: string }): Architecture {
  const { modelType } = config;
  if (modelType === undefined) throw unsupported(`${displayName(config.fileName)} names no model_type.`);
  const family = familyOf(modelType);
  const wiring = family?.modelTypes[modelType]?.wiring;
  if (!family || !wiring) {
    throw unsupported(
      `${displayName(config.fileName)}: models of type “${displayName(modelType)}” cannot be run.`,
    );
  }
  if (isSet(config.raw.get('quantization_config'))) {
    throw unsupported(`${displayName(config.fileName)}: the weights are quantised.`);
  }
  for (const { field, value, otherwise } of wiring.fixed ?? []) {
    if (readFlag(config, { field, orElse: value }) !== value) {
      throw unsupported(
        `${displayName(config.fileName)}: ${field} = ${!value} (${otherwise}) cannot be run.`,
      );
    }
  }
  const context = sizes(config, family, wiring);
  return {
    modelType,
    hidden: context.hidden,
    vocab: needSize(config, { fields: ['vocab_size'] }),
    embedding: resolveEmbedding(context),
    blocks: resolveBlocks(context),
    final: resolveFinal(context, family.modelTypes[modelType]!.tiedByDefault),
    ...maxPositions(context),
  };
}

function sizes(config: ConfigFile, family: Family, wiring: Wiring): Context {
  const s = wiring.sizes;
  const layers = needSize(config, s.layers);
  if (layers > MAX_LAYERS) throw wrong(config, s.layers.fields[0]!, `says ${layers} layers`);
  const hidden = needSize(config, s.hidden);
  const heads = needSize(config, s.heads);
  const keyValueHeads = (s.keyValueHeads && readSize(config, s.keyValueHeads)) ?? heads;
  if (heads % keyValueHeads !== 0) {
    throw wrong(config, 'num_key_value_heads', `does not divide the ${heads} attention heads`);
  }
  const headDim = (s.headDim && readSize(config, s.headDim)) ?? hidden / heads;
  if (!Number.isInteger(headDim))
    throw wrong(config, s.heads.fields[0]!, `does not divide the width ${hidden}`);
  const inner = s.inner === 'four_times_hidden' ? undefined : readSize(config, s.inner);
  return {
    config,
    family,
    wiring,
    layers,
    hidden,
    heads,
    keyValueHeads,
    headDim,
    inner: inner ?? 4 * hidden,
  };
}

function embeddingWidth({ config, wiring, hidden }: Context): number {
  const projection = wiring.embedding.projection;
  return (projection && readSize(config, projection.width)) ?? hidden;
}

function resolveEmbedding(context: Context): Architecture['embedding'] {
  const { config, family, hidden } = context;
  const { scale, norm, positions, projection } = context.wiring.embedding;
  const width = embeddingWidth(context);
  const factor =
    scale === undefined ? 1 : scale === 'sqrt_hidden' ? Math.sqrt(hidden) : needNumber(config, scale);
  return {
    token: family.embedding,
    width,
    scale: factor,
    ...(positions && {
      positions: {
        tensor: positions.tensor,
        rows: needSize(config, positions.count) + positions.offset,
        offset: positions.offset,
      },
    }),
    ...(projection &&
      width !== hidden && { projection: linear(context, projection.into, width, hidden, false) }),
    ...(norm !== undefined && { norm: makeNorm(context, norm, hidden) }),
  };
}

function maxPositions({ config, wiring }: Context): { maxPositions?: number } {
  const { positions } = wiring.embedding;
  return positions ? { maxPositions: needSize(config, positions.count) } : {};
}

function resolveFinal(context: Context, tiedByDefault: boolean): Architecture['final'] {
  const { config, family, wiring, hidden } = context;
  const { norms, head } = wiring;
  const normed = readFlag(config, norms.before ?? true) && !readFlag(config, norms.finalRemoved ?? false);
  const width = embeddingWidth(context);
  const tied = readFlag(config, { field: 'tie_word_embeddings', orElse: tiedByDefault });
  const softcap = head.softcap && readNumber(config, head.softcap);
  const { projection } = wiring.embedding;
  return {
    ...(normed && { norm: makeNorm(context, norms.final, hidden) }),
    ...(projection &&
      width !== hidden && { projection: linear(context, projection.outOf, hidden, width, false) }),
    head: tied ? family.embedding : family.head,
    tied,
    divisor: head.divisor ? needNumber(config, head.divisor) : 1,
    ...(typeof softcap === 'number' && { softcap }),
  };
}

function resolveBlocks(context: Context): Block[] {
  const { config, family, wiring, layers, hidden } = context;
  const { position, window } = wiring.attention;
  const isRotary = typeof position === 'object';
  const withRope = isRotary
    ? layersWithRope(config, position, layers)
    : Array.from({ length: layers }, () => false);
  const windows = layerWindows(config, window, layers, withRope);
  const before = readFlag(config, wiring.norms.before ?? true);
  const parallel = readFlag(config, wiring.parallel ?? false);
  const residualScale = wiring.residualScale ? needNumber(config, wiring.residualScale) : 1;
  return Array.from({ length: layers }, (_, index): Block => {
    const prefix = `${family.stack}${index}.`;
    const { attentionIn, attentionOut, mlpIn, mlpOut } = wiring.norms;
    const norm = (name: string | undefined) =>
      name === undefined ? undefined : makeNorm(context, prefix + name, hidden);
    const heads = [norm(attentionIn), norm(mlpIn)] as const;
    const rope =
      isRotary && withRope[index]
        ? resolveRope(config, position, context.headDim, windows[index] !== undefined)
        : undefined;
    return {
      index,
      attention: resolveAttention(context, prefix, index, rope, windows[index]),
      mlp: resolveMlp(context, prefix),
      ...pick(before ? 'attentionIn' : 'attentionAfter', heads[0]),
      ...pick(before ? 'mlpIn' : 'mlpAfter', heads[1]),
      ...pick('attentionOut', norm(attentionOut)),
      ...pick('mlpOut', norm(mlpOut)),
      parallel,
      residualScale,
    };
  });
}

function resolveAttention(
  context: Context,
  prefix: string,
  index: number,
  rope: Attention['rope'],
  window: number | undefined,
): Attention {
  const { config, wiring, hidden, heads, keyValueHeads, headDim } = context;
  const { attention } = wiring;
  const [queries, keys] = [heads * headDim, keyValueHeads * headDim];
  const { projections, layout } = resolveProjections(context, prefix, queries, keys);
  const softcap = attention.softcap && readNumber(config, attention.softcap);
  return {
    heads,
    keyValueHeads,
    headDim,
    projections,
    layout,
    ...headNorms(context, prefix, queries, keys),
    ...pick('rope', rope),
    ...(attention.position === 'alibi' && { alibi: alibiSlopes(heads) }),
    scale: attentionScale(context, index),
    ...(typeof softcap === 'number' && { softcap }),
    ...pick('window', window),
    output: linear(context, prefix + attention.output, queries, hidden, attention.outputBias),
  };
}

function resolveProjections(
  context: Context,
  prefix: string,
  queries: number,
  keys: number,
): Pick<Attention, 'projections' | 'layout'> {
  const { wiring, hidden, heads, keyValueHeads, headDim } = context;
  const { projections, bias } = wiring.attention;
  const side = {
    query: { begin: 0, stride: headDim },
    key: { begin: queries, stride: headDim },
    value: { begin: queries + keys, stride: headDim },
  };
  if (!('fused' in projections)) {
    return {
      projections: [
        linear(context, prefix + projections.query, hidden, queries, bias),
        linear(context, prefix + projections.key, hidden, keys, bias),
        linear(context, prefix + projections.value, hidden, keys, bias),
      ],
      layout: side,
    };
  }
  const fused = linear(context, prefix + projections.fused, hidden, queries + 2 * keys, bias);
  if (projections.order === 'blocks') return { projections: [fused], layout: side };
  if (heads !== keyValueHeads) throw unsupported(`${prefix}${projections.fused} shares keys between heads.`);
  const stride = 3 * headDim;
  return {
    projections: [fused],
    layout: {
      query: { begin: 0, stride },
      key: { begin: headDim, stride },
      value: { begin: 2 * headDim, stride },
    },
  };
}

function headNorms(
  context: Context,
  prefix: string,
  queries: number,
  keys: number,
): { queryNorm?: HeadNorm; keyNorm?: HeadNorm } {
  const { headNorm } = context.wiring.attention;
  if (!headNorm) return {};
  const perHead = headNorm.over === 'head';
  return {
    queryNorm: makeNorm(context, prefix + headNorm.query, perHead ? context.headDim : queries),
    keyNorm: makeNorm(context, prefix + headNorm.key, perHead ? context.headDim : keys),
  };
}

function attentionScale({ config, wiring, headDim }: Context, index: number): number {
  const { scale, scaleSwitch, inverseLayerScale } = wiring.attention;
  if (typeof scale === 'object' && 'factor' in scale) return needNumber(config, scale.factor);
  const under = scale === 'head_dim' ? headDim : needNumber(config, scale.root);
  if (!(under > 0)) throw wrong(config, 'query_pre_attn_scalar', 'is not positive');
  const base = readFlag(config, scaleSwitch ?? true) ? under ** -0.5 : 1;
  return readFlag(config, inverseLayerScale ?? false) ? base / (index + 1) : base;
}

function resolveMlp(context: Context, prefix: string): Mlp {
  const { config, wiring, hidden, inner } = context;
  const { mlp } = wiring;
  const gated = !('plain' in mlp);
  const up = linear(context, prefix + mlp.up, hidden, 'fusedGate' in mlp ? 2 * inner : inner, mlp.bias);
  return {
    projections: 'gate' in mlp ? [linear(context, prefix + mlp.gate, hidden, inner, mlp.bias), up] : [up],
    gated,
    activation: resolveActivation(config, mlp.activation),
    inner,
    output: linear(context, prefix + mlp.down, inner, hidden, mlp.bias),
  };
}

function resolveActivation(config: ConfigFile, field: ActivationField): Activation {
  const name =
    field.fields.map((path) => readText(config, path)).find((text) => text !== undefined) ?? field.orElse;
  const activation = ACTIVATIONS.get(name);
  if (activation) return activation;
  throw unsupported(`${displayName(config.fileName)}: the activation “${displayName(name)}” is not known.`);
}

function linear(context: Context, module: string, inputs: number, outputs: number, bias: FlagField): Linear {
  return {
    weight: `${module}.weight`,
    ...(readFlag(context.config, bias) && { bias: `${module}.bias` }),
    inputs,
    outputs,
    storage: context.family.linearStorage,
  };
}

function makeNorm({ config, wiring }: Context, module: string, width: number): Norm {
  const { kind, bias, epsilon } = wiring.norm;
  const value = needNumber(config, epsilon);
  if (value < 0)
    throw new AmalgamError('ConfigInvalid', `${config.fileName}: a negative epsilon.`, 'Correct it.');
  return {
    kind,
    weight: `${module}.weight`,
    ...(bias && { bias: `${module}.bias` }),
    epsilon: value,
    width,
  };
}

/** `{ [key]: value }`, or nothing for undefined. */
function pick<K extends string, T>(key: K, value: T | undefined): { [P in K]?: T } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: T };
}
