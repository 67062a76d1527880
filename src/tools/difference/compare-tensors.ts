/** Comparing the tensors of two models; one that fails is put on record, and the others go on. */

import type { Backend } from '../../backend/backend';
import { AmalgamError, type ErrorCode, errorReport } from '../../errors';
import { type OpenMember, openPass } from '../../host/threads';
import type { Inputs } from '../../host/weight-inputs';
import type { Model } from '../../inputs/model';
import { decomposesExactly, spectrumOf } from '../../merge/tensor/decomposition';
import { matrixOf } from '../../merge/tensor/panel-products';
import type { Tile } from '../../merge/tensor/tiles';
import type { WorkSeconds } from '../../reports/job';
import { throwIfCanceled } from '../../sources/cancellation';
import { canBeFar, farFromLora, likenessOf, lookOutside, type Outside, SPECTRUM_VALUES } from './likeness';
import { deltaMatrix, measurePieces, type OpenTensorPair, openPair, openPairWorkspace } from './pair-task';
import type { CompareReport, LoraLikeness, TensorDifference } from './report';
import {
  describeDifference,
  floorF32,
  joinSums,
  type PairSums,
  relativeDifference,
} from './tensor-difference';
import {
  matrixShape,
  pairBytes,
  pairElements,
  pairTensors,
  piecesOf,
  type TensorPair,
  type TensorPairs,
  valueDtype,
} from './tensor-pairs';

interface CompareSettings {
  threshold: number;
  /** Whether modified matrices are looked at: do they look like a LoRA? */
  loraAnalysis: boolean;
  /** Whether the spectra of all matrices are made, also of those that are proven to look like no LoRA. */
  allSpectra?: boolean;
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
  /** The pass over all tensors is done: spectra of some come next. */
  onSpectra?(bytes: number, tensors: number): void;
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
 * Compares every tensor that both models have. Memory is bounded by tiles and, with spectra, by the Δ that stay on the engines.
 * The figures depend on neither tiles nor threads.
 *
 * @throws AmalgamError `NothingToCompare` when the models share no tensor; `Canceled`; failures of the device; the
 *   first failure when every tensor failed
 */
export async function compareTensors(options: CompareOptions): Promise<ComparedTensors> {
  const { base, tuned, engine, threads = 0, inputs, signal } = options;
  const { threshold, loraAnalysis, allSpectra = false, seed, tileElements } = options;
  const pairs = pairTensors(base, tuned);
  requireShared(base, tuned, pairs);
  const { shared } = pairs;
  const pieces = shared.flatMap((pair, index) =>
    piecesOf(pair).map((piece, place, { length: of }) => ({ pair: index, piece, place, of })),
  );
  const pass = await openPass({
    kind: 'compare',
    open: openComparison,
    work: {
      ...{ pairs: shared, pieces, threshold, looks: loraAnalysis && !allSpectra, allSpectra, seed },
      ...(tileElements ? { tileElements } : {}),
    },
    ...{ engine, threads, inputs, files: weightFiles(options) },
    ...(signal && { signal }),
    onSeconds: (seconds) => options.onSeconds?.(seconds),
  });
  const measured = shared.map((): Measured[] => []);
  const compared: Compared[] = [];
  const bytewise: (CompareReport['raw'][number] | Failure)[] = [];
  const lacks = (one: Compared) => loraAnalysis && 'difference' in one && lacksSpectrum(one, allSpectra);
  const tell = (one: Compared) => {
    if ('difference' in one) options.onTensor?.(one.difference);
  };
  try {
    for (const [index, pair] of shared.entries()) {
      if (pairElements(pair) > 0) continue;
      compared[index] = joinPieces(pair, []);
      tell(compared[index]);
    }
    await pass.run(pieces.keys(), (one, item) => {
      const { pair: index, place, of } = pieces[item]!;
      const pair = shared[index]!;
      const parts = measured[index]!;
      parts[place] = one;
      options.onBytes?.(pairBytes(pair) / of, pair.name);
      if (Object.keys(parts).length < of) return;
      const whole = joinPieces(pair, parts);
      compared[index] = whole;
      if (!lacks(whole)) tell(whole);
    });
    for (const pair of pairs.raw) bytewise.push(await orFailure(pair, () => compareBytes(pair, options)));
    const left = shared.flatMap((pair, index) => (lacks(compared[index]!) ? [{ pair, index }] : []));
    if (left.length > 0)
      options.onSpectra?.(
        left.reduce((sum, { pair }) => sum + pairBytes(pair), 0),
        left.length,
      );
    await pass.run(
      left.map(({ index }) => pieces.length + index),
      (one, item) => {
        const index = item - pieces.length;
        const pair = shared[index]!;
        compared[index] = joinPieces(pair, measured[index]!, one);
        options.onBytes?.(pairBytes(pair), pair.name);
        tell(compared[index]);
      },
    );
  } finally {
    pass.close();
  }
  const found = compared.flatMap((one) => ('failure' in one ? [] : [one]));
  const failed = [...compared, ...bytewise].flatMap((one) => ('failure' in one ? [one.failure] : []));
  const raw = bytewise.flatMap((one) => ('failure' in one ? [] : [one]));
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
      found.map(({ difference, sums }) => [
        difference.name,
        new Float32Array(sums.rowSquares.map(Math.sqrt)),
      ]),
    ),
    total: totalOf(found, raw),
  };
}

interface ComparedPair {
  difference: TensorDifference;
  sums: PairSums;
}

type Failure = { failure: CompareReport['failed'][number] };

/** Difference of a pair, or the failure to compute it. */
type Compared = ComparedPair | Failure;

/** A piece of a tensor in the list of all. */
interface PieceItem {
  /** Index of the pair. */
  pair: number;
  piece: Tile;
  /** Which of how many of the pair. */
  place: number;
  of: number;
}

type SpectrumFields = Pick<TensorDifference, 'stableRank' | 'lora' | 'spectrumFailed'>;

/** What there is of an item: of a piece or of a tensor's spectrum. */
export type Measured =
  | { sums: PairSums; outside?: Outside; seconds: number }
  | { spectrum: SpectrumFields; seconds: number }
  | Failure;

/** A tensor from what its pieces, and its spectrum where there is one, come to. */
function joinPieces(pair: TensorPair, pieces: readonly Measured[], last?: Measured): Compared {
  const parts: PairSums[] = [];
  const proofs: Outside[] = [];
  let spectrum: SpectrumFields | undefined;
  let seconds = 0;
  for (const item of last ? [...pieces, last] : pieces) {
    if ('failure' in item) return item;
    seconds += item.seconds;
    if ('spectrum' in item) spectrum = item.spectrum;
    else parts.push(item.sums);
    if ('outside' in item && item.outside) proofs.push(item.outside);
  }
  const sums = joinSums(pair, parts);
  const figures = describeDifference(pair, sums);
  const lora = figures.modified ? farFromLora(proofs, sums.squares) : undefined;
  const stableRank = pair.base.shape.length === 2 && sums.squares === 0 ? 0 : null;
  return { difference: { ...figures, stableRank, ...(lora && { lora }), ...spectrum, seconds }, sums };
}

/** Whether the spectrum of a matrix is to be made. */
function lacksSpectrum({ difference: { shape, lora, modified }, sums }: ComparedPair, all: boolean): boolean {
  return shape.length === 2 && sums.squares > 0 && (all || (modified && lora === undefined));
}

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
export interface CompareWork extends Omit<CompareSettings, 'loraAnalysis'> {
  pairs: readonly TensorPair[];
  /** Items of the pass; behind them come the spectra of the pairs. */
  pieces: readonly PieceItem[];
  /** Whether matrices are looked at: are they far from a LoRA? */
  looks: boolean;
}

/** Opens the comparison in a thread. @throws AmalgamError `Canceled`, and failures of the device */
export const openComparison: OpenMember<CompareWork, Measured> = (compared, tools) => {
  const { pairs, pieces, looks, tileElements } = compared;
  const { engine, read, members: threads } = tools;
  const work = openPairWorkspace(engine, pairs, tileElements, threads);
  const open = (index: number) => {
    const item = pieces[index];
    const pair = pairs[item?.pair ?? index - pieces.length]!;
    const isLookedAt = looks && pair.base.shape.length === 2 && canBeFar(matrixShape(pair.base.shape));
    const of = item && ({ piece: item.piece, keeps: isLookedAt ? 'staying' : 'nothing' } as const);
    const opened = openPair(pair, work, read, { threads, ...of });
    opened.task.prefetch();
    return { index, opened, isLookedAt };
  };
  let ahead: ReturnType<typeof open> | undefined;
  return {
    async take(index, following) {
      const { opened, isLookedAt } = ahead?.index === index ? ahead : open(index);
      ahead = following === undefined ? undefined : open(following);
      const begin = performance.now();
      try {
        return await orFailure(opened.pair, async () => {
          const parts = await measurePieces(opened, floorF32(compared.threshold));
          const seconds = () => (performance.now() - begin) / 1000;
          const [sums] = parts;
          if (index >= pieces.length) {
            const spectrum = await analyze(opened, joinSums(opened.pair, parts), compared);
            return { spectrum, seconds: seconds() };
          }
          const looked = isLookedAt && sums!.squares > 0;
          const outside = looked ? await lookOutside(deltaMatrix(opened), sums!.squares) : undefined;
          return { sums: sums!, ...(outside && { outside }), seconds: seconds() };
        });
      } finally {
        opened.close();
      }
    },
    close() {
      ahead?.opened.close();
      work.close();
    },
  };
};

/** Stable rank of a matrix, and the likeness to a LoRA of a modified one. */
async function analyze(open: OpenTensorPair, sums: PairSums, { seed }: CompareWork): Promise<SpectrumFields> {
  const { pair, rows, cols } = open;
  const smaller = Math.min(rows, cols);
  const { modified } = describeDifference(pair, sums);
  try {
    const delta = matrixOf(deltaMatrix(open));
    const count = Math.min(SPECTRUM_VALUES, smaller);
    const spectrum = await spectrumOf(delta, { count, seed, name: pair.name });
    const top = spectrum.values[0] ?? 0;
    const lora: LoraLikeness | undefined = modified
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
async function orFailure<T>({ name }: TensorPair, act: () => Promise<T>): Promise<T | Failure> {
  try {
    return await act();
  } catch (thrown) {
    const { code, message, hint } = errorReport(thrown);
    if (FATAL.has(code)) throw thrown;
    return { failure: { name, code, message, hint } };
  }
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
