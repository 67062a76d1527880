/** Wiring + config → architecture: every number and every name a forward pass needs. */

import { isSet } from '../formats/json-fields';
import { MAX_LAYERS } from '../formats/model-config';
import { displayName } from '../formats/names';
import { counted } from '../formats/quantity';
import { isJsonNumber } from '../formats/strict-json';
import type { Architecture, Block } from './architecture';
import {
  type ConfigFile,
  needNumber,
  needSize,
  readFlag,
  readNumber,
  readSize,
  unsupported,
  valueAt,
  wrong,
} from './config-reader';
import { type Family, familyOf } from './families';
import {
  type BlockContext,
  type Context,
  linear,
  makeNorm,
  pick,
  resolveActivation,
  vector,
} from './resolution-context';
import { resolveAttention } from './resolved-attention';
import { layersWithRope, layerWindows, resolveRope } from './resolved-positions';
import { perLayerWidth, resolveSteps } from './resolved-steps';
import type { Wiring } from './wiring';

/** Kinds of models that merge and get charts, and that cannot be run here, or not to write: the reason, for people who ask. */

const ENCODER = 'an encoder fills in masked words and predicts no next token, so that it writes no text';

const KINDS: readonly (readonly [types: RegExp, reason: string])[] = [
  [
    /^(?:t5|mt5|umt5|longt5|bart|mbart|pegasus\w*|marian|m2m_100|nllb\w*|led|plbart|blenderbot\w*|prophetnet|whisper|speech_to_text|moonshine|seamless\w*|encoder-decoder)$/,
    'an encoder–decoder writes in answer to what its encoder is given, and perplexity here is of text alone. Measure the output on pairs of its task, e.g. with transformers',
  ],
  [
    /^(?:.*bert\w*|electra|deberta(?:-v2)?|mpnet|xlm-?\w*|esm|longformer|funnel|layoutlm\w*|ernie|roformer|squeezebert|nystromformer|big_bird|data2vec-text|gte|new|eurobert)$/,
    `${ENCODER}, and of this type masked words are not scored here (of BERT, RoBERTa, DistilBERT and ModernBERT they are). Measure the output by its task, e.g. with sentence-transformers or a fill-mask pipeline`,
  ],
  [
    /^(?:\w*clip\w*|siglip\w*|vit\w*|dinov\w*|swin\w*|deit|beit|convnext\w*|wav2vec2\w*|hubert|wavlm\w*)$/,
    'it reads images or sound and writes no text. Measure the output by its task',
  ],
];

/**
 * Why models of a type cannot be run, as the end of a sentence; undefined where it is just not known.
 * @param masked its masked words are scored
 */
export function whyNotRun(modelType: string, masked = false): string | undefined {
  if (masked) return `${ENCODER}. What is measured here is its perplexity on masked words`;
  return KINDS.find(([types]) => types.test(modelType))?.[1];
}

/**
 * The architecture a config describes, in its old and its new spelling.
 *
 * @param config parsed config.json (`parseModelConfig`)
 * @param options `masked`: whoever asks scores masked tokens where that is what the model predicts
 * @throws AmalgamError `ArchitectureUnsupported` (unknown `model_type`, quantized weights, an option no wiring covers),
 *   `ConfigInvalid` (a field is missing or of the wrong type)
 */
export function resolveArchitecture(
  config: ConfigFile & { modelType?: string },
  options: { masked?: boolean } = {},
): Architecture {
  const { modelType } = config;
  if (modelType === undefined) throw unsupported(`${displayName(config.fileName)} names no model_type.`);
  const family = familyOf(modelType);
  const listed = family?.modelTypes[modelType]?.wiring;
  if (!family || !listed || (listed.masked && !options.masked)) {
    const why = whyNotRun(modelType, listed?.masked);
    throw unsupported(
      `${displayName(config.fileName)}: models of type “${displayName(modelType)}” cannot be run${why ? `: ${why}` : ''}.`,
    );
  }
  if (isSet(config.raw.get('quantization_config'))) {
    throw unsupported(
      `${displayName(config.fileName)}: the weights are quantized in a way that is not read.`,
    );
  }
  const wiring = withVariants(config, listed);
  for (const { field, value, otherwise } of wiring.fixed ?? []) {
    const stated = valueAt(config, field) ?? null;
    const found = stated === null ? value : isJsonNumber(stated) ? Number(stated.text) : stated;
    if (found !== value) {
      throw unsupported(
        `${displayName(config.fileName)}: ${field} = ${displayName(String(found))} (${otherwise}) cannot be run.`,
      );
    }
  }
  const context = sizes(config, family, wiring);
  const blocks = resolveBlocks(context);
  const unused = [...(wiring.unused ?? []), ...(blocks.unused ?? [])];
  return {
    modelType,
    ...pick('masked', wiring.masked),
    hidden: context.hidden,
    vocab: needSize(config, { fields: ['vocab_size'] }),
    embedding: resolveEmbedding(context),
    ...resolvePlanes(context),
    ...blocks,
    ...(unused.length > 0 && { unused }),
    final: resolveFinal(context, family.modelTypes[modelType]!.tiedByDefault),
    ...pick('maxPositions', usablePositions(context)),
  };
}

/** The wiring with the changes that flags of the config call for. */
function withVariants(config: ConfigFile, { variants = [], ...wiring }: Wiring): Wiring {
  const chosen = variants.filter(({ when }) =>
    typeof when === 'object' && 'is' in when
      ? valueAt(config, when.field) === when.is
      : readFlag(config, when),
  );
  const made: Wiring = { ...wiring };
  for (const { change } of chosen) Object.assign(made, change);
  return made;
}

function sizes(config: ConfigFile, family: Family, wiring: Wiring): Context {
  const s = wiring.sizes;
  const listedLayers = s.layers.lengthOf === undefined ? undefined : valueAt(config, s.layers.lengthOf);
  const layers = Array.isArray(listedLayers) ? listedLayers.length : needSize(config, s.layers);
  if (layers > MAX_LAYERS) throw wrong(config, s.layers.fields[0]!, `says ${counted(layers, 'layer')}`);
  const hidden = needSize(config, s.hidden);
  const heads = needSize(config, s.heads);
  const keyValueHeads = (s.keyValueHeads && readSize(config, s.keyValueHeads)) ?? heads;
  if (heads % keyValueHeads !== 0) {
    throw wrong(config, 'num_key_value_heads', `does not divide the ${counted(heads, 'attention head')}`);
  }
  const headDim = (s.headDim && readSize(config, s.headDim)) ?? hidden / heads;
  if (!Number.isInteger(headDim))
    throw wrong(config, s.heads.fields[0]!, `does not divide the width ${hidden}`);
  const inner =
    s.inner === 'four_times_hidden'
      ? undefined
      : typeof s.inner === 'function'
        ? s.inner(config)
        : readSize(config, s.inner);
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
    scale === undefined
      ? 1
      : scale === 'sqrt_hidden'
        ? Math.sqrt(hidden)
        : scale === 'sqrt_hidden_bf16'
          ? nearestBf16(Math.sqrt(hidden))
          : needNumber(config, scale);
  return {
    token: family.embedding,
    width,
    scale: factor,
    ...(positions && {
      positions: {
        tensor: positions.tensor,
        rows: usablePositions(context)! + positionOffset(context),
        offset: positionOffset(context),
        ...(positions.types && {
          types: { tensor: positions.types.tensor, rows: needSize(config, positions.types.count) },
        }),
      },
    }),
    ...(projection &&
      width !== hidden && { projection: linear(context, projection.into, width, hidden, false) }),
    ...(norm !== undefined && { norm: makeNorm(context, norm, hidden) }),
    ...perLayerInputs(context),
  };
}

/** The nearest number of eight significant bits (bfloat16). */
function nearestBf16(x: number): number {
  const step = 2 ** (Math.floor(Math.log2(x)) - 7);
  return Math.round(x / step) * step;
}

/** Row of position 0. */
function positionOffset({ config, wiring }: Context): number {
  const offset = wiring.embedding.positions?.offset ?? 0;
  return typeof offset === 'number' ? offset : needNumber(config, offset.behind) + 1;
}

function usablePositions(context: Context): number | undefined {
  const { positions } = context.wiring.embedding;
  if (!positions) return undefined;
  const count = needSize(context.config, positions.count);
  return typeof positions.offset === 'number' ? count : count - positionOffset(context);
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
    ...(normed && norms.final !== undefined && { norm: makeNorm(context, norms.final, hidden) }),
    ...(head.transform && {
      transform: {
        linear: linear(context, head.transform.linear, hidden, hidden, head.transform.bias),
        activation: resolveActivation(config, head.transform.activation),
        norm: makeNorm(context, head.transform.norm, hidden),
      },
    }),
    ...(projection &&
      width !== hidden && { projection: linear(context, projection.outOf, hidden, width, false) }),
    head: tied ? family.embedding : family.head,
    tied,
    ...(head.bias !== undefined && { bias: vector(head.bias, needSize(config, { fields: ['vocab_size'] })) }),
    divisor: headDivisor(context),
    ...(typeof softcap === 'number' && { softcap }),
  };
}

/** Divisor of the logits: `divisor`, over `base` where that is a width they are scaled to, or 1 over `factor`. */
function headDivisor({ config, wiring: { head }, hidden }: Context): number {
  if (head.factor) return 1 / needNumber(config, head.factor);
  if (head.widthBase) return hidden / (readNumber(config, head.widthBase) ?? hidden);
  return head.divisor ? needNumber(config, head.divisor) : 1;
}

function resolveBlocks(context: Context): Pick<Architecture, 'blocks' | 'unused'> {
  const { config, family, wiring, layers } = context;
  const { position, window } = wiring.attention;
  const rotary = typeof position === 'object' ? position : undefined;
  const listed = rotary
    ? layersWithRope(config, rotary, layers)
    : Array.from({ length: layers }, () => false);
  const windows = layerWindows(config, window, layers, listed, (type) =>
    typeof type === 'string' ? wiring.mixers?.kinds[type] !== undefined : false,
  );
  // where only layers with a window rotate, all do in a model without windows
  const isWindowless = windows.every((size) => size === undefined) && !window?.enabled;
  const withRope = rotary?.windowedOnly ? windows.map((size) => size !== undefined || isWindowless) : listed;
  const donors = keyDonors(context, windows);
  const unused: string[] = [];
  const blocks = Array.from({ length: layers }, (_, index): Block => {
    const seesAll = windows[index] === undefined;
    const headDim = (seesAll ? wiring.globalHeadDim?.(config, index) : undefined) ?? context.headDim;
    const valuesAreKeys = seesAll && readFlag(config, wiring.attention.valuesAreKeys ?? false);
    const keyValueHeads =
      (seesAll ? wiring.globalKeyValueHeads?.(config, index) : undefined) ?? context.keyValueHeads;
    const inner = wiring.layerInner?.(config, index) ?? context.inner;
    const donor = donors[index];
    const block: BlockContext = {
      ...context,
      ...{ headDim, keyValueHeads, inner, index, valuesAreKeys },
      prefix: `${family.stack}${index}.`,
      ...(donor !== undefined && { keysOf: donor }),
    };
    if (donor !== undefined) unused.push(...ownKeys(block));
    const rope =
      rotary && withRope[index]
        ? resolveRope(config, rotary, headDim, windows[index] !== undefined)
        : undefined;
    const attention = () => ({ name: 'attention', part: resolveAttention(block, rope, windows[index]) });
    const { layer: factor, steps, planes } = resolveSteps(block, attention);
    return { index, steps, ...pick('factor', factor), ...pick('planes', planes) };
  });
  return { blocks, ...(unused.length > 0 && { unused }) };
}

/** For each of the last layers, the last one before them that sees as far: its keys and values are theirs. */
function keyDonors(
  { config, wiring, layers }: Context,
  windows: readonly (number | undefined)[],
): (number | undefined)[] {
  const shared = wiring.sharedKeys ? needNumber(config, wiring.sharedKeys) : 0;
  const first = layers - shared;
  return windows.map((window, index) => {
    if (index < first || first <= 0) return undefined;
    const donor = windows.slice(0, first).lastIndexOf(window);
    if (donor < 0)
      throw wrong(config, wiring.sharedKeys!.fields[0]!, 'leaves no layer whose keys could be shared');
    return donor;
  });
}

/** Names of the stored key and value tensors of a layer that uses the keys of another. */
function ownKeys({ wiring, prefix }: BlockContext): string[] {
  const { projections, headNorm } = wiring.attention;
  const modules = 'fused' in projections ? [] : [projections.key, projections.value];
  const names = [...modules.flatMap((m) => [`${m}.weight`, `${m}.bias`])];
  return [...names, ...(headNorm ? [`${headNorm.key}.weight`] : [])].map((name) => prefix + name);
}

function resolvePlanes(context: Context): Pick<Architecture, 'planes'> {
  const { config, wiring, hidden } = context;
  if (!wiring.planes) return {};
  const count = needSize(config, wiring.planes.count);
  const list = (module: string) =>
    Array.from({ length: count - 1 }, (_, i) => linear(context, `${module}.${i}`, hidden, hidden, false));
  return { planes: { count, begin: list(wiring.planes.begin), end: list(wiring.planes.end) } };
}

function perLayerInputs(context: Context): Pick<Architecture['embedding'], 'perLayer'> {
  const { config, wiring, hidden, layers } = context;
  if (!wiring.perLayer) return {};
  const width = perLayerWidth(context);
  if (width === undefined) return {};
  return {
    perLayer: {
      table: wiring.perLayer.table,
      rows: needSize(config, wiring.perLayer.rows),
      width,
      layers,
      scale: Math.sqrt(width),
      projection: linear(context, wiring.perLayer.projection, hidden, layers * width, false, hidden ** -0.5),
      norm: makeNorm(context, wiring.perLayer.norm, width),
    },
  };
}
