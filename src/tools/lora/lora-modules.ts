/** The first pass of an extraction: what changed, and the factors of what can have factors. */

import type { Backend } from '../../backend/backend';
import { exact } from '../../backend/exact';
import { type WeightDtype, weightBytes } from '../../formats/dtype';
import { encodeFromF32 } from '../../formats/half';
import { moduleFolder } from '../../formats/module-names';
import type { Model } from '../../inputs/model';
import type { ReadTensor } from '../../inputs/stored-tensor';
import { column } from '../../linalg/columns';
import type { Svd } from '../../linalg/small-svd';
import { decompose, decomposesExactly } from '../../merge/tensor/decomposition';
import { matrixOf, readDelta } from '../../merge/tensor/panel-products';
import { memoryName } from '../../models/aliases';
import { tensorKey } from '../../models/families';
import { isBuffer, splitLayer, tensorRole } from '../../models/tensor-role';
import type { RankChoice } from '../../reports/lora';
import { SPECTRUM_VALUES } from '../difference/likeness';
import { deltaMatrix, measurePair, type OpenTensorPair, visitPairs } from '../difference/pair-task';
import type { PairSums } from '../difference/tensor-difference';
import { pairElements, type TensorPair } from '../difference/tensor-pairs';
import { rankOf, wantedValues } from './rank-choice';
import type { ExtractLoraRequest } from './report';

export interface ExtractOptions {
  base: Model;
  tuned: Model;
  engine: Backend;
  read: ReadTensor;
  rank: RankChoice;
  maxRank: number;
  settings: LoraSettings;
  dtype: 'F32' | 'F16' | 'BF16';
  seed: number;
  /** By energy a few singular values are looked for first, which are enough for most merges of LoRAs. */
  growing?: boolean;
  tileElements?: number;
  signal?: AbortSignal;
  onPhase?(phase: 'extracting' | 'checking', bytes: number, tensors: number): void;
  onBytes?(bytes: number, tensor: string): void;
  onTensor?(): void;
}

/** A module that gets factors, with as many singular values as may be wanted. */
export interface FactorModule {
  module: string;
  kind: 'linear' | 'embedding';
  transposed: boolean;
  pair: TensorPair;
  values: Float64Array;
  factors: LoraFactors;
  /** Rank without a byte budget, which may lower it. */
  rank: number;
  /** False where the largest rank came before the energy or cutoff asked for. */
  reached: boolean;
  squares: number;
  exact: boolean;
}

export interface ChangedTensors {
  modules: FactorModule[];
  /** Modules that are carried whole. */
  saved: Set<string>;
  /** Module → change of its bias. */
  biases: Map<string, { name: string; delta: Float32Array<ArrayBuffer>; norm: number }>;
  left: { name: string; normDelta: number | null; why: string }[];
  /** Tensors compared, and those of them that differ. */
  compared: number;
  changed: string[];
  /** Name → ‖Δ‖². */
  squares: Map<string, number>;
}

/**
 * Goes through all pairs and decomposes what is to be decomposed. Factors stay in memory in f32.
 * @throws AmalgamError `NonFinite`, `Canceled`, and what reading and the engine throw: an adapter lacks nothing in silence
 */
export async function changedTensors(
  pairs: readonly TensorPair[],
  options: ExtractOptions,
): Promise<ChangedTensors> {
  const found: ChangedTensors = {
    modules: [],
    saved: new Set(),
    biases: new Map(),
    left: [],
    compared: pairs.filter((pair) => pairElements(pair) > 0).length,
    changed: [],
    squares: new Map(),
  };
  await visitPairs(pairs, options, (open) => visit(open, options, found));
  return found;
}

async function visit(open: OpenTensorPair, options: ExtractOptions, found: ChangedTensors): Promise<void> {
  const { pair } = open;
  const sums = await measurePair(open, 0);
  found.squares.set(pair.name, sums.squares);
  if (sums.squares === 0) return;
  found.changed.push(pair.name);
  const target = targetOf(
    { name: pair.name, shape: pair.base.shape },
    pair.key,
    options.base,
    options.settings,
  );
  const normDelta = Math.sqrt(sums.squares);
  switch (target.carrier) {
    case 'none':
      found.left.push({ name: pair.name, normDelta, why: target.why });
      return;
    case 'saved':
      found.saved.add(target.module);
      return;
    case 'bias': {
      const { data } = await readDelta(deltaMatrix(open));
      found.biases.set(target.module, { name: pair.name, delta: Float32Array.from(data), norm: normDelta });
      return;
    }
    case 'factors':
      found.modules.push(await factorise(open, sums, target, options));
  }
}

/** Singular values that are looked for first. */
const FEW = 32;

async function factorise(
  open: OpenTensorPair,
  sums: PairSums,
  { module, kind, transposed }: Target & { carrier: 'factors' },
  { rank: choice, maxRank, seed, growing }: ExtractOptions,
): Promise<FactorModule> {
  const { pair } = open;
  const delta = matrixOf(deltaMatrix(open));
  const count = wantedValues(choice, Math.min(delta.rows, delta.cols), maxRank);
  const few = growing && choice.kind === 'energy' && !decomposesExactly(delta) ? [Math.min(FEW, count)] : [];
  let svd: Svd | undefined;
  let found: ReturnType<typeof rankOf> | undefined;
  for (const wanted of new Set([...few, count])) {
    svd = await decompose(delta, { count: wanted, seed, name: pair.name });
    found = rankOf(choice, svd.s, sums.squares, wanted);
    if (found.reached) break;
  }
  const { rank, reached } = found!;
  return {
    module,
    kind,
    transposed,
    pair,
    values: svd!.s.slice(0, Math.max(rank, SPECTRUM_VALUES)),
    factors: factorsOf(svd!, rank, transposed),
    rank,
    reached,
    squares: sums.squares,
    exact: decomposesExactly(delta),
  };
}

// ---------------------------------------------------------------- PEFT's carrier of each changed tensor: factors, a whole module, a bias of lora_B, or none

type LoraSettings = Required<Pick<ExtractLoraRequest, 'include' | 'exclude' | 'embeddings' | 'vectors'>>;

export type Target =
  | { carrier: 'factors'; module: string; kind: 'linear' | 'embedding'; transposed: boolean }
  /** The whole module, in `modules_to_save`. */
  | { carrier: 'saved'; module: string }
  | { carrier: 'bias'; module: string }
  | { carrier: 'none'; why: string };

/** Routers of mixtures of experts, which are no linear layers in transformers 5: PEFT only takes them whole. */
const ROUTER = /\.(?:mlp|block_sparse_moe|feed_forward)\.(?:gate|router)\.(?:weight|bias)$/;

/**
 * Carrier of a tensor of the base in the adapter.
 *
 * @param key name without the family's prefix, as in `Model.tensors`
 */
export function targetOf(
  { name, shape }: { name: string; shape: readonly number[] },
  key: string,
  base: Model,
  settings: LoraSettings,
): Target {
  const { kind } = tensorRole(name, shape);
  if (isBuffer(name)) return { carrier: 'none', why: 'it is a buffer, which follows from the config' };
  if (moduleFolder(name)) return { carrier: 'none', why: 'it is of a module behind the body' };
  const [, path, part] = /^(.+)\.(weight|bias)$/.exec(peftName(name, key, base)) ?? [];
  if (path === undefined) return { carrier: 'none', why: 'it is no weight or bias of a module' };
  if (!isWanted(path, settings)) return { carrier: 'none', why: 'its module is left out on request' };
  const isEnd = key === base.embedding || key === base.head || kind === 'embedding' || kind === 'head';
  if (isEnd) {
    if (settings.embeddings === 'skip')
      return { carrier: 'none', why: 'embeddings and heads are left out on request' };
    const isToken = key === base.embedding;
    if (
      settings.embeddings === 'lora' &&
      part === 'weight' &&
      shape.length === 2 &&
      (isToken || key === base.head)
    ) {
      return {
        carrier: 'factors',
        module: path,
        kind: isToken ? 'embedding' : 'linear',
        transposed: isToken,
      };
    }
    return { carrier: 'saved', module: path };
  }
  if (part === 'bias' && isMatrix(base, key.replace(/bias$/, 'weight')))
    return { carrier: 'bias', module: path };
  if (/\.experts\.\d+\./.test(name))
    return {
      carrier: 'none',
      why: 'transformers fuses the experts when it loads them, so PEFT has no such module',
    };
  if (part === 'weight' && shape.length === 2 && !ROUTER.test(name)) {
    const { family } = base.checkpoint;
    const transposed = family?.linearStorage === 'in_out' && splitLayer(name) !== null;
    return { carrier: 'factors', module: path, kind: 'linear', transposed };
  }
  if (ROUTER.test(name)) return { carrier: 'saved', module: path };
  if (shape.length > 2)
    return { carrier: 'none', why: `it has ${shape.length} dimensions, and factors make matrices` };
  if (settings.vectors === 'skip') return { carrier: 'none', why: 'vectors are left out on request' };
  return { carrier: 'saved', module: path };
}

/**
 * The name a tensor has in the model that transformers loads: a checkpoint of the bare model lacks the family's prefix,
 * which everything but the head then gets.
 */
export function peftName(name: string, key: string, { checkpoint, tensors, head }: Model): string {
  const { family, config } = checkpoint;
  const inMemory = memoryName(name, config?.modelType);
  if (!family || inMemory.startsWith(family.prefix) || key === head) return inMemory;
  const isBare = ![...tensors.values()].some((tensor) => tensor.name.startsWith(family.prefix));
  return isBare ? family.prefix + inMemory : inMemory;
}

/** Paths of all modules of a model with a matrix for a weight. */
export function matrixModules(model: Model): string[] {
  return [...model.tensors]
    .filter(([key, { shape }]) => shape.length === 2 && key.endsWith('.weight') && !moduleFolder(key))
    .map(([key, { name }]) => peftName(name, key, model).replace(/\.weight$/, ''));
}

/** True for a module of the base that has a bias. */
export function hasBias(base: Model, module: string): boolean {
  return base.tensors.has(tensorKey(`${module}.bias`, base.checkpoint.family));
}

function isMatrix(base: Model, key: string): boolean {
  return base.tensors.get(key)?.shape.length === 2;
}

export function isWanted(
  module: string,
  { include, exclude }: Pick<LoraSettings, 'include' | 'exclude'>,
): boolean {
  const has = (parts: readonly string[]) => parts.some((part) => module.includes(part));
  return (include.length === 0 || has(include)) && !has(exclude);
}

// ---------------------------------------------------------------- factors

/** The factors of a module with all singular values that may be wanted, each rank a row of its own. */
export interface LoraFactors {
  /** √sᵢ · (side of the inputs), row after row. */
  a: Float32Array<ArrayBuffer>;
  /** √sᵢ · (side of the outputs), row after row: Bᵀ. */
  b: Float32Array<ArrayBuffer>;
  inputs: number;
  outputs: number;
}

/**
 * A = √S·Vᵀ and B = U·√S for Δ = U·S·Vᵀ stored as [outputs, inputs]; for Δ stored as [inputs, outputs] (Conv1D and
 * embeddings) the sides change places. The scale goes evenly to both, as in mergekit (extract_lora.py).
 */
export function factorsOf({ s, u, v }: Svd, count: number, transposed: boolean): LoraFactors {
  const [left, right] = transposed ? [v, u] : [u, v];
  const a = new Float32Array(count * right.rows);
  const b = new Float32Array(count * left.rows);
  for (let i = 0; i < count; i++) {
    const root = Math.sqrt(s[i]!);
    a.set(
      column(right, i).map((x) => exact(x * root)),
      i * right.rows,
    );
    b.set(
      column(left, i).map((x) => exact(x * root)),
      i * left.rows,
    );
  }
  return { a, b, inputs: right.rows, outputs: left.rows };
}

/** lora_A [rank, inputs]. */
export function firstRanks({ a, inputs }: LoraFactors, rank: number): Float32Array {
  return a.subarray(0, rank * inputs);
}

/** Values as they are stored. */
export function encoded(values: Float32Array, dtype: WeightDtype): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(values.length * weightBytes(dtype));
  encodeFromF32(values, dtype, bytes);
  return bytes;
}
