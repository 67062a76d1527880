/** The first pass of an extraction: what changed, and the factors of what can have factors. */
import type { Backend } from '../../backend/backend';
import type { Model } from '../../inputs/model';
import type { ReadTensor } from '../../inputs/stored-tensor';
import { throwIfCanceled } from '../../sources/cancellation';
import { decompose, decomposesExactly } from '../difference/decomposition';
import { SPECTRUM_VALUES } from '../difference/likeness';
import {
  deltaMatrix,
  measurePair,
  type OpenPair,
  openPair,
  openPairWorkspace,
  type PairSums,
} from '../difference/pair-task';
import { readDelta } from '../difference/panel-products';
import { pairBytes, pairElements, type TensorPair } from '../difference/tensor-pairs';
import { factorsOf, type LoraFactors } from './lora-factors';
import { type LoraSettings, type Target, targetOf } from './lora-targets';
import { rankOf, wantedValues } from './rank-choice';
import type { RankChoice } from './report';

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
  tunedSquares: number;
}

/**
 * Goes through all pairs and decomposes what is to be decomposed. Factors stay in memory in f32.
 * @throws AmalgamError `NonFinite`, `Canceled`, and what reading and the engine throw: an adapter lacks nothing in silence
 */
export async function changedTensors(
  pairs: readonly TensorPair[],
  options: ExtractOptions,
): Promise<ChangedTensors> {
  const { engine, read, signal, tileElements } = options;
  const shared = pairs.filter((pair) => pairElements(pair) > 0);
  const found: ChangedTensors = {
    modules: [],
    saved: new Set(),
    biases: new Map(),
    left: [],
    compared: shared.length,
    changed: [],
    squares: new Map(),
    tunedSquares: 0,
  };
  const work = openPairWorkspace(engine, shared, tileElements);
  const open = (pair: TensorPair | undefined) => pair && openPair(pair, work, read);
  let next = open(shared[0]);
  next?.task.prefetch();
  try {
    for (const [i, pair] of shared.entries()) {
      const current = next!;
      next = open(shared[i + 1]);
      next?.task.prefetch();
      throwIfCanceled(signal);
      try {
        await visit(current, options, found);
      } finally {
        current.close();
      }
      options.onBytes?.(pairBytes(pair), pair.name);
      options.onTensor?.();
    }
  } finally {
    next?.close();
    work.close();
  }
  return found;
}

async function visit(open: OpenPair, options: ExtractOptions, found: ChangedTensors): Promise<void> {
  const { pair } = open;
  const sums = await measurePair(open, 0);
  found.squares.set(pair.name, sums.squares);
  found.tunedSquares += sums.tunedSquares;
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

async function factorise(
  open: OpenPair,
  sums: PairSums,
  { module, kind, transposed }: Target & { carrier: 'factors' },
  { rank: choice, maxRank, seed }: ExtractOptions,
): Promise<FactorModule> {
  const { pair } = open;
  const delta = deltaMatrix(open);
  const count = wantedValues(choice, Math.min(delta.rows, delta.cols), maxRank);
  const svd = await decompose(delta, { count, seed, name: pair.name });
  const { rank, reached } = rankOf(choice, svd.s, sums.squares, count);
  return {
    module,
    kind,
    transposed,
    pair,
    values: svd.s.slice(0, Math.max(rank, SPECTRUM_VALUES)),
    factors: factorsOf(svd, rank, transposed),
    rank,
    reached,
    squares: sums.squares,
    exact: decomposesExactly(delta),
  };
}
