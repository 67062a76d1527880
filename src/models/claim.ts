/** Every tensor of a checkpoint is claimed by the architecture, known to be no weight, or a reason not to run it. */
import { AmalgamError } from '../errors';
import type { ModelConfig } from '../formats/model-config';
import { moduleFolder } from '../formats/module-names';
import { counted } from '../formats/quantity';
import { isJsonNumber } from '../formats/strict-json';
import { isOfText, textModel } from './aliases';
import type { Architecture, Block, Linear, Norm, Part, Vector } from './architecture';
import { type ConfigFile, FieldMissing, unsupported } from './config-reader';
import { countedFaults } from './counted-faults';
import { familyOf, tensorKey } from './families';
import { resolveArchitecture, whyNotRun } from './resolution';
import { isBuffer, splitLayer } from './tensor-role';

/** A tensor an architecture computes with. */
interface ExpectedTensor {
  name: string;
  shape: readonly number[];
}

/** Everything with weights in a block or a part of one, in the order it is used. */
interface Leaves {
  linears: Linear[];
  norms: Norm[];
  vectors: Vector[];
}

/** Linear maps, norms and vectors anywhere inside a value. */
export function leavesOf(value: unknown, found: Leaves = { linears: [], norms: [], vectors: [] }): Leaves {
  if (Array.isArray(value)) for (const entry of value) leavesOf(entry, found);
  else if (typeof value === 'object' && value !== null) {
    if ('storage' in value) found.linears.push(value as Linear);
    else if ('epsilon' in value) found.norms.push(value as Norm);
    else if ('tensors' in value) found.vectors.push(value as Vector);
    else for (const entry of Object.values(value)) leavesOf(entry, found);
  }
  return found;
}

/** Every tensor the architecture needs, in the order it is used; a tied head is the embedding and not listed again. */
export function expectedTensors(architecture: Architecture): ExpectedTensor[] {
  const { embedding, final, vocab, hidden, blocks, planes } = architecture;
  const outside: ExpectedTensor[] = [{ name: embedding.token, shape: [vocab, embedding.width] }];
  if (embedding.perLayer) {
    const { table, rows, layers, width } = embedding.perLayer;
    outside.push({ name: table, shape: [rows, layers * width] });
  }
  if (embedding.positions) {
    const { tensor, rows, types } = embedding.positions;
    outside.push({ name: tensor, shape: [rows, hidden] });
    if (types) outside.push({ name: types.tensor, shape: [types.rows, hidden] });
  }
  return [
    ...outside,
    ...tensorsIn(embedding),
    ...tensorsIn(planes),
    ...blocks.flatMap(tensorsIn),
    ...tensorsIn(final),
    ...(final.tied ? [] : [{ name: final.head, shape: [vocab, embedding.width] }]),
  ];
}

/** Points where the input of linear layers can be tapped: before a branch's first ones, and before its last one. */
export type LinearSite = `${string}_in` | `${string}_out`;

/**
 * The linear layers of a block with the input they share: where a calibration pass taps. What stands between the first and the
 * last layer of a branch (latent attention, the steps of a state space), routers and experts are not among them.
 */
export function linearSites(
  block: Block,
): { site: LinearSite; kind: Part['kind']; inputs: number; linears: readonly Linear[] }[] {
  const site = (name: LinearSite, kind: Part['kind'], linears: readonly Linear[]) => {
    return { site: name, kind, inputs: linears[0]!.inputs, linears };
  };
  return block.steps
    .flatMap((step) => step.branches)
    .flatMap(({ name, part }) => {
      if (!('projections' in part)) return [];
      const { kind, projections, output } = part;
      return [site(`${name}_in`, kind, projections), site(`${name}_out`, kind, [output])];
    });
}

/** Tensors of all linear maps, norms and vectors anywhere inside a value. */
export function tensorsIn(value: unknown): ExpectedTensor[] {
  const { linears, norms, vectors } = leavesOf(value);
  return [
    ...norms.flatMap(normTensors),
    ...linears.flatMap(linearTensors),
    ...vectors.flatMap((vector) => vector.tensors.flatMap((t) => ('name' in t ? [t] : []))),
  ];
}

function normTensors({ weight, bias, width }: Norm): ExpectedTensor[] {
  return [weight, bias].flatMap((name) => (typeof name === 'string' ? [{ name, shape: [width] }] : []));
}

function linearTensors({ weight, bias, inputs, outputs, storage, stack, update }: Linear): ExpectedTensor[] {
  const of = stack ? [stack.of] : [];
  return [
    { name: weight, shape: [...of, ...(storage === 'out_in' ? [outputs, inputs] : [inputs, outputs])] },
    ...(bias === undefined ? [] : [{ name: bias, shape: [...of, outputs] }]),
    ...(update ? [update.down, update.up].flatMap(linearTensors) : []),
  ];
}

/** Match of an architecture's tensors with the stored ones. */
interface Match {
  /** The architecture's name → the stored name. */
  claimed: Map<string, string>;
  missing: ExpectedTensor[];
  misshapen: { name: string; actual: readonly number[]; expected: readonly number[] }[];
  /** Stored tensors that nobody claims. */
  unclaimed: string[];
}

type Stored = ReadonlyMap<string, { shape: readonly number[] }>;

/**
 * Matches stored tensors with the architecture's names: with or without the family's prefix. A stored head beside a
 * tied embedding is ignored: where the two differ, the config that is read has them untied. So are buffers.
 */
function matchTensors(architecture: Architecture, stored: Stored): Match {
  const family = familyOf(architecture.modelType);
  const storedName = new Map([...stored.keys()].map((name) => [tensorKey(name, family), name]));
  const match: Match = { claimed: new Map(), missing: [], misshapen: [], unclaimed: [] };
  for (const tensor of expectedTensors(architecture)) {
    const { name, shape: expected } = tensor;
    const found = storedName.get(tensorKey(name, family));
    if (found === undefined) {
      match.missing.push(tensor);
      continue;
    }
    const actual = stored.get(found)!.shape;
    if (actual.length !== expected.length || actual.some((extent, i) => extent !== expected[i])) {
      match.misshapen.push({ name: found, actual, expected });
    }
    match.claimed.set(name, found);
  }
  const unused = new Set(architecture.unused?.map((name) => tensorKey(name, family)));
  const known = new Set(match.claimed.values());
  const tiedHead = architecture.final.tied && family ? [family.head] : [];
  match.unclaimed = [...stored.keys()].filter(
    (name) =>
      !known.has(name) &&
      !isBuffer(name) &&
      !moduleFolder(name) &&
      !tiedHead.includes(name) &&
      !unused.has(tensorKey(name, family)),
  );
  return match;
}

/** Tensors that only a model with a head for words has: a masked one's transformation of the stream is among them. */
function headTensors({ masked, final, vocab, embedding }: Architecture): Set<string> {
  const own = masked ? tensorsIn(final) : final.bias ? tensorsIn(final.bias) : [];
  const head = final.tied ? [] : [{ name: final.head, shape: [vocab, embedding.width] }];
  return new Set([...own, ...head].map(({ name }) => name));
}

/**
 * The stored tensors of an architecture.
 *
 * @param stored shapes by stored name
 * @returns the architecture's name → the stored name
 * @throws AmalgamError `TensorMissing`, `ShapeMismatch`, `ArchitectureUnsupported` (a tensor nobody claims)
 */
export function claimTensors(architecture: Architecture, stored: Stored): Map<string, string> {
  const { claimed, missing, misshapen, unclaimed } = matchTensors(architecture, stored);
  const heads = architecture.masked ? headTensors(architecture) : new Set<string>();
  const lost = missing.find(({ name }) => !heads.has(name)) ?? missing[0];
  if (lost && heads.has(lost.name)) {
    throw unsupported(
      `The model has no head that fills in masked words (${lost.name}): it was saved without, as sentence encoders and classifiers are. Measure sentence encoders and cross-encoders by similarity and retrieval.`,
    );
  }
  if (lost) {
    throw new AmalgamError(
      'TensorMissing',
      `The model has no tensor ${lost.name}, which a ${architecture.modelType} needs.`,
      'Its config.json and its weights do not belong together, or the copy is incomplete. Get it again.',
    );
  }
  const [odd] = misshapen;
  if (odd) {
    throw new AmalgamError(
      'ShapeMismatch',
      `${odd.name} is [${odd.actual.join(', ')}], but its config.json asks for [${odd.expected.join(', ')}].`,
      'The config.json and the weights do not belong together. Get both from one place.',
    );
  }
  if (unclaimed.length > 0) {
    throw unsupported(
      `The tensor ${unclaimed[0]} has no place in a ${architecture.modelType} as it is known here.`,
    );
  }
  return claimed;
}

/** How a config.json and the weights beside it contradict each other: names, with both shapes where these differ. */
interface ConfigFaults {
  /** Tensors of the body that the config asks for. */
  missing: string[];
  /** Tensors of the head, which a model saved without one lacks and a loader makes up. */
  headless: string[];
  misshapen: string[];
  /** Weights of layers that the config has no place for: loaders leave them out. */
  unused: string[];
  /** Layers of the config and of the weights, where these are more and the others do not predict tokens further on. */
  layers?: [said: number, stored: number];
  /** Error in the config: no model can be like this. */
  invalid?: string;
  /** Set where the model cannot be run, or is one tower of several: less is known of what it asks for. */
  unsure?: true;
}

/** Of layers behind the last that predict tokens further on (`num_nextn_predict_layers`), which no forward pass runs. */
const FURTHER_ON = /\.(?:eh_proj|enorm|hnorm|shared_head|mtp\w*)\./;

/** Index of the last layer that names are of; -1 where there is none. */
function greatestLayer(names: Iterable<string>): number {
  let most = -1;
  for (const name of names) most = Math.max(most, splitLayer(name)?.index ?? -1);
  return most;
}

/** Classes that predict words, by the ends of their names. */
const WITH_HEAD = /(?:ForCausalLM|LMHeadModel|ForMaskedLM|ForConditionalGeneration)$/;
/** Rows of labels: heads of classifiers. */
const LABELS = /^(?:score|(?:classifier|classification_head)(?:\.out_proj)?)\.weight$/;

/**
 * Compares a config with the weights beside it by what the forward pass would ask for, so that a plan finds before anything is
 * downloaded what running the model would find. Of a multimodal model the text tower is compared.
 *
 * @param stored shapes by stored name, weights of eight and four bits as what they stand for
 */
export function configFaults(config: ModelConfig, stored: Stored): ConfigFaults {
  // nothing but the ends of a model
  if (config.layers === 0 && greatestLayer(stored.keys()) < 0)
    return { missing: [], headless: [], misshapen: [], unused: [] };
  const faults: ConfigFaults = {
    missing: [],
    headless: [],
    misshapen: labelFaults(config, stored),
    unused: [],
  };
  const text = textConfig(config);
  let architecture: Architecture;
  try {
    architecture = resolveArchitecture(text, { masked: true });
  } catch (thrown) {
    if (!(thrown instanceof AmalgamError)) throw thrown;
    // a field that is not there has a default that is not known here
    if (thrown.code === 'ConfigInvalid' && !(thrown.cause instanceof FieldMissing)) {
      return { ...faults, invalid: thrown.message };
    }
    const { misshapen: sizes, ...counts } = countedFaults(config, stored);
    return { ...faults, ...counts, misshapen: [...faults.misshapen, ...sizes], unsure: true };
  }
  const isWhole = text.modelType === config.modelType;
  const isTower = (name: string) => isWhole || isOfText(tensorKey(name, familyOf(text.modelType)));
  const among = new Map([...stored].filter(([name]) => isTower(name)));
  if (!isWhole) faults.unsure = true;
  if (among.size === 0) return faults;
  const { missing, misshapen, unclaimed } = matchTensors(architecture, among);
  const heads = headTensors(architecture);
  const { architectures } = config;
  const isHeaded =
    architectures.some((name) => WITH_HEAD.test(name)) ||
    (architectures.length === 0 && !architecture.masked);
  for (const { name } of missing.filter((tensor) => isTower(tensor.name))) {
    if (!heads.has(name)) faults.missing.push(name);
    else if (isHeaded) faults.headless.push(name);
  }
  for (const { name, actual, expected } of misshapen) {
    faults.misshapen.push(`${name}: [${actual}] instead of [${expected}]`);
  }
  faults.unused = unclaimed.filter((name) => splitLayer(name) !== null);
  const count = architecture.blocks.length;
  const layers = 1 + greatestLayer(faults.unused);
  if (layers > count && !faults.unused.some((name) => FURTHER_ON.test(name))) faults.layers = [count, layers];
  return faults;
}

/** The config of the text tower where the model's own type cannot be run, without the quantization that was read away. */
export function textConfig({ raw, modelType, fileName }: ModelConfig): ConfigFile & { modelType?: string } {
  const inner = raw.get('text_config');
  const type = inner instanceof Map ? inner.get('model_type') : undefined;
  const isOwn = modelType !== undefined && familyOf(modelType)?.modelTypes[modelType]?.wiring !== undefined;
  const fields = !isOwn && inner instanceof Map && typeof type === 'string' ? inner : raw;
  const said = new Map(fields);
  for (const key of ['quantization_config', 'quantization']) said.delete(key);
  const tied = raw.get('tie_word_embeddings');
  if (fields !== raw && tied !== undefined) said.set('tie_word_embeddings', tied);
  const own = fields === raw ? modelType : textModel(type as string);
  return { raw: said, fileName, ...(own === undefined ? {} : { modelType: own }) };
}

/** Heads of classifiers with other rows than the config has labels: transformers takes two where it has none. */
function labelFaults({ raw, modelType }: ModelConfig, stored: Stored): string[] {
  if (!familyOf(modelType) && whyNotRun(modelType ?? '') === undefined) return [];
  const names = raw.get('id2label');
  const count = raw.get('num_labels');
  const labels = names instanceof Map ? names.size : isJsonNumber(count) ? Number(count.text) : 2;
  return [...stored].flatMap(([name, { shape }]) =>
    LABELS.test(name) && shape.length === 2 && shape[0] !== labels
      ? [`${name}: [${shape}], and the config has ${counted(labels, 'label')}`]
      : [],
  );
}
