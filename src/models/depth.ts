/**
 * Depth edits: the config of a model with only some of its layers, in order. Which fields depend on the index of a
 * layer is in the wirings (`window`, `position.skip`); what cannot be expressed at the new depth is refused.
 */

import { AmalgamError } from '../errors';
import { editConfig, type ModelConfig, parseModelConfig } from '../formats/model-config';
import { displayName } from '../formats/names';
import type { JsonValue, PlainJson } from '../formats/strict-json';
import { type Architecture, type Attention, type Block, partOf } from './architecture';
import { expectedTensors, leavesOf, linearSites } from './claim';
import { readNumber, unsupported, valueAt } from './config-reader';
import { familyOf } from './families';
import { knowsIndexFields, restackFields } from './index-fields';
import { resolveArchitecture } from './resolution';
import { splitLayer } from './tensor-role';
import type { Wiring } from './wiring';

/** Names within a block (`self_attn.q_proj.weight`) of its linear layers, with their biases. */
export function linearNames(block: Block): Set<string> {
  return new Set(
    linearSites(block).flatMap(({ linears }) =>
      linears.flatMap(({ weight, bias }) =>
        [weight, bias].flatMap((name) => (name === undefined ? [] : [splitLayer(name)!.rest])),
      ),
    ),
  );
}

export interface DepthConfig {
  /** config.json of the shallower model. */
  text: string;
  config: ModelConfig;
  architecture: Architecture;
  /** Fields that were written because the kind of a layer no longer follows from its index. */
  spelledOut: string[];
}

/**
 * The config of a model made of some layers of another: their number in every spelling, lists with one entry per layer,
 * `max_window_layers`, and, where the kinds of layers followed from their index, the lists of them.
 *
 * @param order for every layer of the new model the layer whose place it takes, ascending
 * @throws AmalgamError `ArchitectureUnsupported` for an unknown architecture, and where a layer would not compute as it
 *   did at its old index (GPT-2's `scale_attn_by_inverse_layer_idx`); `ConfigInvalid`
 */
export function depthConfig(config: ModelConfig, order: readonly number[]): DepthConfig {
  const before = resolveArchitecture(config);
  const wiring = familyOf(before.modelType)!.modelTypes[before.modelType]!.wiring!;
  const { fields, unsaid } = restackFields(
    before.modelType,
    (field) => valueAt(config, field),
    before.blocks.length,
    order,
  );
  const kinds = kindFields(config, wiring, before, order);
  const text = editConfig(config, { layerOrder: order, fields: new Map([...fields, ...kinds]) });
  const after = parseModelConfig(text, config.fileName);
  const architecture = resolveArchitecture(after);
  for (const [index, layer] of order.entries()) {
    const [old, now] = [before.blocks[layer]!, architecture.blocks[index]!];
    const changed = changedKind(partOf(old, 'attention'), partOf(now, 'attention')) ?? otherKind(old, now);
    if (changed === undefined && unsaid.length === 0) continue;
    const what = changed ?? unsaid.join(', ');
    throw unsupported(
      `${displayName(config.fileName)}: the ${what} of layer ${layer} of this ${before.modelType} ${what === 'score scale' || what === 'kind' ? 'follows' : 'follow'} from its index, which would be ${index}; no config says otherwise.`,
    );
  }
  const spelledOut = [...kinds.keys()].filter((field) => !config.raw.has(field));
  return { text, config: after, architecture, spelledOut };
}

/** The same with so many experts in every layer that has some. */
export function withExperts({ config, ...rest }: DepthConfig, experts: number): DepthConfig {
  const { fields } = familyOf(config.modelType)!.modelTypes[config.modelType!]!.wiring!.experts!.count;
  const field = fields.find((name) => valueAt(config, name) !== undefined)!;
  const text = editConfig(config, { fields: new Map([[field, experts]]) });
  const edited = parseModelConfig(text, config.fileName);
  return { ...rest, text, config: edited, architecture: resolveArchitecture(edited) };
}

/** Config fields of restacked layers whose kind no longer follows from their index. */
function kindFields(
  config: ModelConfig,
  wiring: Wiring,
  before: Architecture,
  order: readonly number[],
): Map<string, PlainJson> {
  return new Map([
    ...kindLists(config, wiring, before, order),
    ...windowStart(config, wiring, before, order),
  ]);
}

/** Blocks of which one has other tensors than the other. */
function otherKind(old: Block, now: Block): string | undefined {
  const names = (block: Block) =>
    [...leavesOf(block).linears]
      .map(({ weight }) => splitLayer(weight)?.rest)
      .sort()
      .join();
  return names(old) === names(now) ? undefined : 'kind';
}

/** Lists that a config does without, because its class derives them from the index. */
function kindLists(
  config: ModelConfig,
  { attention }: Wiring,
  { blocks }: Architecture,
  order: readonly number[],
): Map<string, PlainJson> {
  const lists = new Map<string, PlainJson>();
  const isMissing = (field: string) => !Array.isArray(valueAt(config, field));
  const { window, position } = attention;
  const windows = blocks.map((block) => partOf(block, 'attention')?.window !== undefined);
  if (window && window.layers !== 'all' && windows.includes(true) && isMissing('layer_types')) {
    lists.set(
      'layer_types',
      order.map((layer) => (windows[layer] ? 'sliding_attention' : 'full_attention')),
    );
  }
  const skip = typeof position === 'object' ? position.skip : undefined;
  if (skip && isMissing(skip.list)) {
    lists.set(
      skip.list,
      order.map((layer) => (partOf(blocks[layer]!, 'attention')?.rope ? 1 : 0)),
    );
  }
  return lists;
}

/** The layer from which on windows apply counts the remaining layers before it. */
function windowStart(
  config: ModelConfig,
  { attention: { window } }: Wiring,
  { blocks }: Architecture,
  order: readonly number[],
): [string, PlainJson][] {
  if (!window || window.layers === 'all' || typeof window.layers.orElse !== 'object') return [];
  if (!('fromLayer' in window.layers.orElse)) return [];
  const { fromLayer } = window.layers.orElse;
  const field = fromLayer.fields[0]!;
  const start = readNumber(config, fromLayer);
  const isUsed = blocks.some((block) => partOf(block, 'attention')?.window !== undefined);
  if (typeof start !== 'number' || (valueAt(config, field) === undefined && !isUsed)) return [];
  return [[field, order.filter((layer) => layer < start).length]];
}

/** Property of an attention that depends on the layer's index and differs; undefined where both compute alike. */
function changedKind(a: Attention | undefined, b: Attention | undefined): string | undefined {
  if (!a || !b) return a === b ? undefined : 'kind';
  if (a.window !== b.window) return 'windows';
  if (JSON.stringify(a.rope) !== JSON.stringify(b.rope)) return 'rotary positions';
  return a.scale === b.scale ? undefined : 'score scale';
}

// The config of restacked layers: fields that depend on the index of a layer are set anew or refused.

interface Restacked {
  /** config.json of the output, but for what else changes in it. */
  text: string;
  /** Fields of the config whose meaning the new order does not have: the output would not load. */
  unsaid: string[];
  /** Layers of the output that hold other tensors than its config asks for. */
  misplaced: number[];
  /** Layers of the output that load and compute otherwise than they did. */
  changed: number[];
  /** Whether it is known how layers of this type depend on their index. */
  known: boolean;
}

/** @param order for every layer of the output the layer it comes from */
export function restack(config: ModelConfig, order: readonly number[]): Restacked {
  const { modelType = '', layers = 0 } = config;
  const text = config.raw.get('text_config');
  const inner = text instanceof Map ? text : undefined;
  const innerType = inner?.get('model_type');
  const type = knowsIndexFields(modelType) || typeof innerType !== 'string' ? modelType : innerType;
  const read = (field: string): JsonValue | undefined => config.raw.get(field) ?? inner?.get(field);
  const { fields, unsaid } = restackFields(type, read, layers, order);
  const before = resolved(config);
  const wiring = before && familyOf(modelType)?.modelTypes[modelType]?.wiring;
  if (before && wiring) {
    for (const [field, value] of kindFields(config, wiring, before, order)) fields.set(field, value);
  }
  const made = editConfig(config, { layerOrder: order, fields });
  const after = before && resolved(parseModelConfig(made, config.fileName));
  const pairs =
    before && after ? order.map((layer, i) => [before.blocks[layer], after.blocks[i], i] as const) : [];
  const differing = (say: (block: Block) => string) =>
    pairs.flatMap(([old, now, i]) => (old && now && say(old) === say(now) ? [] : [i]));
  const misplaced =
    before && after && outsideOf(before) !== outsideOf(after) ? [...order.keys()] : differing(tensorsOf);
  return {
    text: made,
    unsaid,
    misplaced,
    changed: differing(wholeOf).filter((i) => !misplaced.includes(i)),
    known: before !== undefined || knowsIndexFields(type),
  };
}

/** The architecture, or undefined for a model that cannot be run. */
function resolved(config: ModelConfig): Architecture | undefined {
  try {
    return resolveArchitecture(config);
  } catch (error) {
    if (error instanceof AmalgamError) return undefined;
    throw error;
  }
}

/** A block without its index: in a name the first number is the layer's, a later one may be an expert's. */
function wholeOf(block: Block): string {
  const { index, ...rest } = block;
  return JSON.stringify(rest, (_, value) =>
    typeof value === 'string' ? value.replace(`.${index}.`, '.·.') : value,
  );
}

function tensorsOf(block: Block): string {
  const expected = expectedTensors({ ...EMPTY, blocks: [block] });
  const names = expected.map(({ name, shape }) => `${name.replace(`.${block.index}.`, '.·.')} [${shape}]`);
  return names.sort().join('\n');
}

function outsideOf(architecture: Architecture): string {
  return JSON.stringify(expectedTensors({ ...architecture, blocks: [] }));
}

/** An architecture of nothing but its blocks. */
const EMPTY: Architecture = {
  modelType: '',
  hidden: 0,
  vocab: 0,
  embedding: { token: '', width: 0, scale: 1 },
  blocks: [],
  final: { head: '', tied: true, divisor: 1 },
};
