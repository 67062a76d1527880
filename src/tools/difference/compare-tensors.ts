/** Comparing the tensors of two models; one that fails is put on record, and the others go on. */

import type { Backend } from '../../backend/backend';
import { AmalgamError, type ErrorCode, errorReport } from '../../errors';
import { type OpenMember, openPass } from '../../host/threads';
import type { Inputs } from '../../host/weight-inputs';
import type { Model } from '../../inputs/model';
import type { WorkSeconds } from '../../reports/job';
import { throwIfCanceled } from '../../sources/cancellation';
import { decomposesExactly, likenessOf, SPECTRUM_VALUES, spectrumOf } from './decomposition';
import {
  deltaMatrix,
  measurePair,
  type OpenPair,
  openPair,
  openPairWorkspace,
  type PairSums,
} from './pair-task';
import type { CompareReport, LoraLikeness, TensorDifference } from './report';
import { describeDifference, floorF32, relativeDifference } from './tensor-difference';
import {
  pairBytes,
  pairElements,
  pairTensors,
  type TensorPair,
  type TensorPairs,
  valueDtype,
} from './tensor-pairs';

interface CompareSettings {
  threshold: number;
  loraAnalysis: boolean;
  seed: number;
  /** Elements of one tile; the figures do not depend on it. */
  tileElements?: number;
}

export interface CompareOptions extends CompareSettings {
  base: Model;
  tuned: Model;
  engine: Backend;
  /** Threads that do the work of the engine, where there are any. */
  threads?: number;
  inputs: Inputs;
  signal?: AbortSignal;
  onTensor?(difference: TensorDifference): void;
  /** Stored bytes gone through, and the tensor they belong to. */
  onBytes?(bytes: number, tensor: string): void;
  onSeconds?(seconds: WorkSeconds): void;
}

interface ComparedTensors
  extends Pick<CompareReport, 'tensors' | 'ranking' | 'raw' | 'failed' | 'total'>,
    Pick<TensorPairs, 'onlyInBase' | 'onlyInFinetuned' | 'shapeMismatches'> {
  /** Name → ‖Δ‖ of every row. */
  rowNorms: Map<string, Float32Array>;
}

/** Failures of the device or of the whole job: no other tensor would fare better. */
const FATAL: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'Canceled',
  'GpuCompile',
  'GpuLost',
  'GpuUnverified',
  'GpuValidation',
  'WorkerDied',
]);
/** Bytes of one step of a comparison byte by byte. */
const RAW_BYTES = 8 * 2 ** 20;

/** Bytes that a comparison goes through. */
export function bytesToCompare({ shared, raw }: Pick<TensorPairs, 'shared' | 'raw'>): number {
  return [...shared, ...raw].reduce((sum, pair) => sum + pairBytes(pair), 0);
}

/**
 * Compares every tensor that both models have. Memory is bounded by tiles and by the Δ that stay on the engines, at most
 * 512 MiB together. The figures depend on neither tiles nor threads.
 *
 * @throws AmalgamError `NothingToCompare` when the models share no tensor; `Canceled`; failures of the device; the
 *   first failure when every tensor failed
 */
export async function compareTensors(options: CompareOptions): Promise<ComparedTensors> {
  const { base, tuned, engine, threads = 0, inputs, signal } = options;
  const { threshold, loraAnalysis, seed, tileElements } = options;
  const pairs = pairTensors(base, tuned);
  requireShared(base, tuned, pairs);
  const pass = await openPass({
    kind: 'compare',
    open: openComparison,
    work: { pairs: pairs.shared, threshold, loraAnalysis, seed, ...(tileElements ? { tileElements } : {}) },
    ...{ engine, threads, inputs, files: weightFiles(options) },
    ...(signal && { signal }),
    onSeconds: (seconds) => options.onSeconds?.(seconds),
  });
  let compared: Compared[];
  try {
    compared = await pass.run(pairs.shared.length, (one, index) => {
      const pair = pairs.shared[index]!;
      if ('difference' in one) options.onTensor?.(one.difference);
      options.onBytes?.(pairBytes(pair), pair.name);
    });
  } finally {
    pass.close();
  }
  const found = compared.flatMap((one) => ('failure' in one ? [] : [one]));
  const failed = compared.flatMap((one) => ('failure' in one ? [one.failure] : []));
  const raw: CompareReport['raw'] = [];
  for (const pair of pairs.raw) {
    const bytes = await orFailure(pair, () => compareBytes(pair, options));
    if ('failure' in bytes) failed.push(bytes.failure);
    else raw.push(bytes);
  }
  if (found.length + raw.length === 0 && failed[0]) {
    throw new AmalgamError(failed[0].code, failed[0].message, failed[0].hint);
  }
  const { onlyInBase, onlyInFinetuned, shapeMismatches } = pairs;
  const tensors = found.map(({ difference }) => difference);
  return {
    tensors,
    ranking: [...tensors].sort((a, b) => b.relative - a.relative).map(({ name }) => name),
    ...{ raw, failed, onlyInBase, onlyInFinetuned, shapeMismatches },
    rowNorms: new Map(
      found.map(({ difference, sums }) => [difference.name, Float32Array.from(sums.rowSquares, Math.sqrt)]),
    ),
    total: totalOf(found, raw),
  };
}

interface ComparedPair {
  difference: TensorDifference;
  sums: PairSums;
}

/** Difference of a pair, or the failure to compute it. */
export type Compared = ComparedPair | { failure: CompareReport['failed'][number] };

/** Figures over all tensors; sums are added in the order of the pairs. */
function totalOf(found: readonly ComparedPair[], raw: CompareReport['raw']): CompareReport['total'] {
  const sumOf = (key: 'elements' | 'squares' | 'baseSquares' | 'changed' | 'different') =>
    found.reduce((sum, { sums }) => sum + sums[key], 0);
  const elements = sumOf('elements');
  const [normBase, normDelta] = [Math.sqrt(sumOf('baseSquares')), Math.sqrt(sumOf('squares'))];
  const share = (count: number) => (elements > 0 ? count / elements : 0);
  const tensors = found.map(({ difference }) => difference);
  return {
    elements,
    normBase,
    normDelta,
    relative: relativeDifference(normDelta, normBase),
    changedRatio: share(sumOf('changed')),
    bitDifferentRatio: share(sumOf('different')),
    compared: found.length + raw.length,
    modified: tensors.filter((t) => t.modified).length,
    identical:
      tensors.filter((t) => t.bitDifferentRatio === 0).length + raw.filter((t) => t.identical).length,
  };
}

/** What a thread compares. */
export interface CompareWork extends CompareSettings {
  pairs: readonly TensorPair[];
}

/** Opens the comparison in a thread. @throws AmalgamError `Canceled`, and failures of the device */
export const openComparison: OpenMember<CompareWork, Compared> = (compared, tools) => {
  const { pairs, tileElements } = compared;
  const work = openPairWorkspace(tools.engine, pairs, tileElements, tools.members);
  const open = (index: number) => {
    const pair = pairs[index]!;
    const opened = pairElements(pair) > 0 ? openPair(pair, work, tools.read, tools.members) : undefined;
    opened?.task.prefetch();
    return { index, opened };
  };
  let ahead: ReturnType<typeof open> | undefined;
  return {
    async take(index, following) {
      const { opened } = ahead?.index === index ? ahead : open(index);
      ahead = following === undefined ? undefined : open(following);
      const pair = pairs[index]!;
      try {
        return await orFailure(pair, () => comparePair(pair, opened, compared));
      } finally {
        opened?.close();
      }
    },
    close() {
      ahead?.opened?.close();
      work.close();
    },
  };
};

async function comparePair(
  pair: TensorPair,
  open: OpenPair | undefined,
  options: CompareSettings,
): Promise<ComparedPair> {
  const begin = performance.now();
  const sums = open ? await measurePair(open, floorF32(options.threshold)) : noSums();
  const spectrum = open ? await analyze(open, sums, options) : { stableRank: null };
  const difference: TensorDifference = {
    ...describeDifference(pair, sums),
    ...spectrum,
    seconds: (performance.now() - begin) / 1000,
  };
  return { difference, sums };
}

type SpectrumFields = Pick<TensorDifference, 'stableRank' | 'lora' | 'spectrumFailed'>;

/** Stable rank of every matrix that changed at all, and the likeness to a LoRA of a modified one. */
async function analyze(open: OpenPair, sums: PairSums, options: CompareSettings): Promise<SpectrumFields> {
  const { pair, rows, cols } = open;
  if (pair.base.shape.length !== 2) return { stableRank: null };
  if (sums.squares === 0) return { stableRank: 0 };
  const smaller = Math.min(rows, cols);
  const wanted = options.loraAnalysis && describeDifference(pair, sums).modified;
  try {
    const count = Math.min(wanted ? SPECTRUM_VALUES : 1, smaller);
    const delta = deltaMatrix(open);
    const spectrum = await spectrumOf(delta, { count, seed: options.seed, name: pair.name });
    const top = spectrum.values[0] ?? 0;
    const lora: LoraLikeness | undefined = wanted
      ? { ...likenessOf(spectrum, sums.squares, smaller), exact: decomposesExactly(delta) }
      : undefined;
    return { stableRank: top > 0 ? sums.squares / (top * top) : 0, ...(lora ? { lora } : {}) };
  } catch (thrown) {
    const { code, message } = errorReport(thrown);
    if (FATAL.has(code)) throw thrown;
    return { stableRank: null, spectrumFailed: message };
  }
}

async function compareBytes(
  pair: TensorPair,
  { inputs: { read }, signal, onBytes }: CompareOptions,
): Promise<CompareReport['raw'][number]> {
  const a = pair.base.view.origin;
  const b = pair.tuned.view.origin;
  const length = a.end - a.begin;
  let identical = a.dtype === b.dtype && length === b.end - b.begin;
  for (let begin = 0; identical && a !== b && begin < length; begin += RAW_BYTES) {
    throwIfCanceled(signal);
    const end = Math.min(begin + RAW_BYTES, length);
    const [x, y] = await Promise.all([read(a, begin, end), read(b, begin, end)]);
    identical = x.every((byte, i) => byte === y[i]);
  }
  onBytes?.(pairBytes(pair), pair.name);
  return {
    name: pair.name,
    dtype: { base: valueDtype(pair.base), finetuned: valueDtype(pair.tuned) },
    identical,
  };
}

/** Result of `act`, or its failure. */
async function orFailure<T>(
  { name }: TensorPair,
  act: () => Promise<T>,
): Promise<T | { failure: CompareReport['failed'][number] }> {
  try {
    return await act();
  } catch (thrown) {
    const { code, message, hint } = errorReport(thrown);
    if (FATAL.has(code)) throw thrown;
    return { failure: { name, code, message, hint } };
  }
}

function noSums(): PairSums {
  const zero = { absolute: 0, squares: 0, baseSquares: 0, tunedSquares: 0, product: 0, largest: 0 };
  return { elements: 0, ...zero, changed: 0, flipped: 0, different: 0, rowSquares: new Float64Array(0) };
}

/** @throws AmalgamError `NothingToCompare` when two models have no tensor in common */
export function requireShared(base: Model, tuned: Model, pairs: TensorPairs): void {
  if (pairs.shared.length + pairs.raw.length + pairs.shapeMismatches.length > 0) return;
  const kind = ({ checkpoint }: Model) => checkpoint.config?.modelType ?? 'of unknown kind';
  const [example] = base.tensors.keys();
  const [other] = tuned.tensors.keys();
  throw new AmalgamError(
    'NothingToCompare',
    `${base.ref} (${kind(base)}) and ${tuned.ref} (${kind(tuned)}) have no tensor in common: one has ${example ?? 'no tensors'}, the other ${other ?? 'no tensors'}.`,
    'Compare a model with one that was fine-tuned from it.',
  );
}

/** The weight files of both models, each once: what a comparison reads. */
export function weightFiles({
  base,
  tuned,
}: {
  base: Model;
  tuned: Model;
}): { folder: string; file: string }[] {
  const files = new Map<string, { folder: string; file: string }>();
  for (const { tensors } of [base, tuned]) {
    for (const { view } of tensors.values()) {
      const { origin, lowRank, addend } = view;
      for (const ref of [origin, lowRank?.a, lowRank?.b, lowRank?.magnitude, addend?.tensor]) {
        if (ref) files.set(`${ref.folder}\0${ref.file}`, { folder: ref.folder, file: ref.file });
      }
    }
  }
  return [...files.values()];
}
