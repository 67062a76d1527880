/** Experts and their router as a wiring has them. */
import type { Branch, Experts, Linear, Mlp, Router } from './architecture';
import {
  type ConfigFile,
  needNumber,
  needSize,
  readFlag,
  readNumber,
  readSize,
  valueAt,
} from './config-reader';
import { type BlockContext, linear, makeNorm, resolveActivation, vector } from './resolution-context';
import type { ExpertsWiring, LayerRule, NumberField } from './wiring';

export const everyLayer: LayerRule = () => true;

/** Layers from the one that a field names on. */
export const layersFrom =
  (field: string, orElse: number): LayerRule =>
  (config, layer) =>
    layer >= needNumber(config, { fields: [field], orElse });

/** Layers offset, offset + period … */
export const layersByPeriod =
  (period: string, offset: string, defaults: readonly [number, number]): LayerRule =>
  (config, layer) =>
    (layer - needNumber(config, { fields: [offset], orElse: defaults[1] })) %
      needSize(config, { fields: [period], orElse: defaults[0] }) ===
    0;

/** Numbers of a list of the config, or undefined. */
export function numbersAt(config: ConfigFile, path: string): number[] | undefined {
  const list = valueAt(config, path);
  if (!Array.isArray(list)) return undefined;
  return list.map((_, i) => needNumber(config, { fields: [`${path}.${i}`] }));
}

/** Routed experts, and beside them the shared one where there is one. */
export function expertBranches(context: BlockContext): Pick<Branch, 'name' | 'part'>[] {
  const wiring = context.wiring.experts!;
  const { config, prefix } = context;
  const count = needSize(config, wiring.count);
  const inner = needSize(config, wiring.inner);
  const experts = Array.from({ length: count }, (_, index) =>
    oneExpert(context, wiring, inner, { index, of: count }),
  );
  const part: Experts = { kind: 'experts', router: resolveRouter(context, wiring, count), experts };
  const { shared } = wiring;
  const width = shared && readSize(config, shared.inner);
  if (!shared || width === undefined) return [{ name: 'experts', part }];
  const times = shared.widthFactor ? (readNumber(config, shared.widthFactor) ?? 0) : 1;
  if (times === 0) return [{ name: 'experts', part }];
  const factor = shared.factor && linear(context, prefix + shared.factor, context.hidden, 1, false);
  const both: Mlp = {
    ...oneMlp(context, prefix, shared.modules, width * times, wiring),
    ...(factor && { factor }),
  };
  return [
    { name: 'experts', part },
    { name: 'shared', part: both },
  ];
}

function oneExpert(
  context: BlockContext,
  wiring: ExpertsWiring,
  inner: number,
  stack: NonNullable<Linear['stack']>,
): Mlp {
  const { prefix, hidden, config } = context;
  const { weights } = wiring;
  if (!('up' in weights)) return oneMlp(context, prefix, weights.each(stack.index), inner, wiring);
  const { storage, biased } = weights;
  const layer = (name: string, inputs: number, outputs: number): Linear => ({
    weight: prefix + name,
    ...(biased && { bias: `${prefix}${name}_bias` }),
    inputs,
    outputs,
    storage,
    stack,
  });
  return {
    kind: 'mlp',
    projections: [layer(weights.up, hidden, 2 * inner)],
    gated: true,
    activation: wiring.activation ?? resolveActivation(config, context.wiring.mlp.activation),
    inner,
    output: layer(weights.down, inner, hidden),
  };
}

/** A gated MLP of these modules: gate, up and down, or gate and up in one. */
function oneMlp(
  context: BlockContext,
  prefix: string,
  [gate, up, down]: readonly [gate: string | undefined, up: string, down: string],
  inner: number,
  { bias = false, activation }: ExpertsWiring,
): Mlp {
  const { config, hidden } = context;
  const layer = (name: string, inputs: number, outputs: number) =>
    linear(context, prefix + name, inputs, outputs, bias);
  return {
    kind: 'mlp',
    projections:
      gate === undefined
        ? [layer(up, hidden, 2 * inner)]
        : [layer(gate, hidden, inner), layer(up, hidden, inner)],
    gated: true,
    activation: activation ?? resolveActivation(config, context.wiring.mlp.activation),
    inner,
    output: layer(down, inner, hidden),
  };
}

function resolveRouter(context: BlockContext, { router, chosen }: ExpertsWiring, count: number): Router {
  const { config, prefix, hidden } = context;
  const { by, correction, normalized, groups } = router;
  const groupCount = groups ? (readNumber(config, groups.count) ?? 1) : 1;
  const isNormalized = normalized !== undefined && readFlag(config, normalized.when);
  const isCorrected = correction !== undefined && readFlag(config, correction.when ?? true);
  return {
    scores: linear(
      context,
      prefix + router.module,
      hidden,
      count,
      router.biased ?? false,
      router.norm === undefined ? 1 : hidden ** -0.5,
    ),
    chosen: needSize(config, chosen),
    by,
    ...(router.margin && { margin: needNumber(config, router.margin) }),
    ...(isCorrected && { bias: vector(prefix + correction.name, ...correction.leadingShape, count) }),
    ...(groups &&
      groupCount > 1 && {
        groups: { count: groupCount, chosen: needSize(config, groups.chosen), summed: groups.summed },
      }),
    ...(isNormalized && {
      normalized: {
        floor: normalized.floor ? needNumber(config, normalized.floor) : 0,
        added: normalized.added ?? 0,
      },
    }),
    scale: router.scale ? needNumber(config, router.scale) : 1,
    ...(router.onInput && { onInput: true }),
    ...(router.norm !== undefined && {
      norm: { ...makeNorm(context, '', hidden), weight: prefix + router.norm },
    }),
    ...(router.factors !== undefined && { factors: vector(prefix + router.factors, count) }),
  };
}

// Feed-forward parts as a wiring has them.

export function resolveMlp(context: BlockContext): Mlp {
  const { config, wiring, prefix, hidden, inner } = context;
  const { mlp } = wiring;
  const gated = !('plain' in mlp);
  const factor = (field: NumberField | undefined) => (field ? needNumber(config, field) : 1);
  const up = linear(context, prefix + mlp.up, hidden, 'fusedGate' in mlp ? 2 * inner : inner, mlp.bias);
  return {
    kind: 'mlp',
    projections:
      'gate' in mlp
        ? [linear(context, prefix + mlp.gate, hidden, inner, mlp.bias, factor(mlp.gateFactor)), up]
        : [up],
    gated,
    activation: resolveActivation(config, mlp.activation),
    inner,
    output: linear(context, prefix + mlp.down, inner, hidden, mlp.bias, factor(mlp.downFactor)),
    ...sparsity(mlp.sparse?.(config, context.index)),
    ...(mlp.xielu !== undefined && { xielu: xieluVectors(prefix + mlp.xielu) }),
  };
}

/** The parameters of xIELU as ApertusMLP stores them. */
function xieluVectors(module: string): NonNullable<Mlp['xielu']> {
  return [
    vector(`${module}.alpha_p`, 1),
    vector(`${module}.alpha_n`, 1),
    vector(`${module}.beta`),
    vector(`${module}.eps`),
  ];
}

function sparsity(share: number | undefined): Pick<Mlp, 'sparse'> {
  return share === undefined || share <= 0 ? {} : { sparse: share };
}
