/** The config of restacked layers: fields that depend on the index of a layer are set anew or refused. */

import { AmalgamError } from '../errors';
import { editConfig, type ModelConfig, parseModelConfig } from '../formats/model-config';
import type { JsonValue } from '../formats/strict-json';
import type { Architecture, Block } from './architecture';
import { expectedTensors } from './claim';
import { kindFields } from './depth';
import { familyOf } from './families';
import { knowsIndexFields, restackFields } from './index-fields';
import { resolveArchitecture } from './resolution';

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
