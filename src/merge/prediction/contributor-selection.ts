/** Selection of a contributor's task vector under given settings, predicted from its histogram alone. */

import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { ContributorReport } from '../../reports/job';
import type { DeltaPreset } from '../method';
import type { ResolvedParameters } from '../plan/plan';
import { densityOf } from '../tensor/delta-selectors';
import { keptCount, keyToMagnitude } from '../tensor/radix-select';
import {
  above,
  binAt,
  binShare,
  insideBin,
  l1Ratio,
  largest,
  type MagnitudeCurve,
  magnitudeCurve,
} from './magnitude-curve';
import type { ContributorError } from './predicted-report';
import { type ReplayedSample, replaySample } from './replayed-sample';
import {
  elementsBetween,
  emptySample,
  type KeptSample,
  keepBySize,
  keepDrawn,
  patternOf,
  patternsOf,
  type SampleBins,
  type SampleContribution,
  type SampleSelection,
  sampleBins,
  stepBySize,
  thresholdInBin,
  tiesOf,
} from './sample-selection';

/** Selection of a contributor under given settings. */
interface Selected {
  preset: DeltaPreset;
  model: ResolvedParameters;
  modelThreshold: ModelThreshold | undefined;
  report: ContributorReport;
  error: ContributorError;
  selection: SampleSelection;
}

/**
 * The statistics of a tensor made ready, once, to be asked often. It remembers what it was asked last: most steps of a slider
 * change one contributor, and few elements of its sample.
 */
export class PreparedStatistics {
  readonly statistics: DeltaStatistics;
  readonly curves: readonly MagnitudeCurve[];
  /** Cosines between contributors; a zero task vector has 0 with all. */
  readonly cosine: number[][];
  readonly #selected: (Selected | undefined)[] = [];
  readonly #bins: (SampleBins | undefined)[] = [];
  readonly #whole: (KeptSample | undefined)[] = [];
  readonly #ranks: (Float64Array | undefined)[] = [];
  readonly #kept: ({ of: SampleSelection; sample: KeptSample } | undefined)[] = [];
  #replayed: ReplayedSample | undefined;

  constructor(statistics: DeltaStatistics) {
    this.statistics = statistics;
    this.curves = statistics.contributors.map((_, i) => magnitudeCurve(statistics, i));
    this.cosine = this.curves.map((a, i) =>
      this.curves.map((b, j) => {
        const scale = a.norm * b.norm;
        return scale > 0 ? Math.max(-1, Math.min(1, statistics.products[i + 1]![j + 1]! / scale)) : 0;
      }),
    );
  }

  /** Selection of contributor `index` under given settings. */
  selected(
    index: number,
    preset: DeltaPreset,
    model: ResolvedParameters,
    modelThreshold: ModelThreshold | undefined,
  ): Selected {
    const known = this.#selected[index];
    if (
      known &&
      known.modelThreshold?.threshold === modelThreshold?.threshold &&
      known.modelThreshold?.share === modelThreshold?.share &&
      known.preset.select === preset.select &&
      known.preset.scope === preset.scope &&
      known.preset.rescale === preset.rescale &&
      known.model.density === model.density &&
      known.model.epsilon === model.epsilon &&
      known.model.gamma === model.gamma
    ) {
      return known;
    }
    const curve = this.curves[index]!;
    const found = selectionOf(this, index, preset, model, modelThreshold);
    const { kept, threshold, energy, rescaled, sample } = found;
    const keptNorm = Math.sqrt(energy);
    const made: Selected = {
      preset,
      model,
      modelThreshold,
      report: {
        id: this.statistics.contributors[index]!.id,
        kept,
        threshold,
        norm: curve.norm,
        keptNorm: rescaled === undefined ? keptNorm : null,
        rescaledNorm:
          rescaled === undefined ? scaleOf(preset, model, found, curve) * keptNorm : Math.sqrt(rescaled),
      },
      error: {
        ...found.error,
        // ‖·‖ = √energy; where only the rescaled norm is known, what is kept of the energy is about what is kept
        norm:
          found.error.energy /
          (2 * (rescaled === undefined ? energy / curve.norm ** 2 : kept / curve.elements) || 1),
      },
      selection: sample,
    };
    this.#selected[index] = made;
    return made;
  }

  /** Which elements of the sample contributor `index` keeps: until it is asked what it keeps under other settings. */
  keptSample(index: number, { selection }: Selected): KeptSample {
    const values = this.statistics.sample.changes[index]!;
    const last = this.#kept[index];
    if (last?.of === selection) return last.sample;
    const sample = last?.sample ?? emptySample(values.length);
    if (selection.kind === 'random') {
      keepDrawn(sample, this.#wholeSample(index), values.length, selection.chance, index);
    } else if (sample.band) {
      stepBySize(sample, sample.band, this.bins(index), selection);
    } else {
      keepBySize(sample, values, selection);
    }
    this.#kept[index] = { of: selection, sample };
    return sample;
  }

  /** The merge of the sample under certain settings: until it is replayed under others. */
  replay(preset: DeltaPreset, contributions: readonly SampleContribution[]): ReplayedSample {
    this.#replayed = replaySample(this.statistics, preset, contributions, this.#replayed);
    return this.#replayed;
  }

  /** A contributor's sample by magnitude. */
  bins(index: number): SampleBins {
    this.#bins[index] ??= sampleBins(patternsOf(this.statistics.sample.changes[index]!));
    return this.#bins[index];
  }

  /** For every sampled value of a contributor, how many elements of the tensor are larger. */
  ranks(index: number): Float64Array {
    this.#ranks[index] ??= Float64Array.from(
      this.statistics.sample.changes[index]!,
      (v) => above(this.curves[index]!, Math.abs(v)).count,
    );
    return this.#ranks[index];
  }

  /** All of the sample of a contributor by sign. */
  #wholeSample(index: number): KeptSample {
    const known = this.#whole[index];
    if (known) return known;
    const values = this.statistics.sample.changes[index]!;
    const made = emptySample(values.length);
    keepBySize(made, values, { kind: 'all' });
    this.#whole[index] = made;
    return made;
  }
}

interface Selection {
  kept: number;
  threshold: number;
  energy: number;
  error: Omit<ContributorError, 'norm'>;
  /** How many are kept of those between the `before`-th and the `after`-th largest. */
  keptOf(before: number, after: number): number;
  /** ‖τ̂‖² where every kept value is rescaled by a chance of its own. */
  rescaled?: number;
  sample: SampleSelection;
}

export const EXACT: ContributorError = { kept: 0, energy: 0, norm: 0, threshold: 0 };
/** Of a selection by size: energies are spread evenly inside a bin, and a bin is an eighth of an octave wide. */
const BINNED: Selection['error'] = { kept: 0, energy: 0.03, threshold: 0.125 };
/** Standard deviations of a draw that an error covers. */
const DEVIATIONS = 2.5;

/** How far a draw of every element with chance `density` scatters. */
function drawError({ elements, edges, energies }: MagnitudeCurve, density: number): Selection['error'] {
  const spread = DEVIATIONS * Math.sqrt(density * (1 - density));
  let fourth = 0;
  for (let j = 1; j < energies.length; j++) fourth += (energies[j]! - energies[j - 1]!) * edges[j - 1]! ** 2;
  const all = energies.at(-1) ?? 0;
  return {
    kept: spread / Math.sqrt(elements) + 0.5 / elements,
    energy: all > 0 ? (spread * Math.sqrt(fourth)) / all : 0,
    threshold: 0,
  };
}

/** Factor of the kept values. */
function scaleOf(
  preset: DeltaPreset,
  model: ResolvedParameters,
  { kept, keptOf }: Pick<Selection, 'kept' | 'keptOf'>,
  curve: MagnitudeCurve,
): number {
  const density = densityOf(model);
  if (kept >= curve.elements || preset.rescale === 'none') return 1;
  if (preset.rescale !== 'l1') return density > 0 ? 1 / density : 1;
  return l1Ratio(curve, keptOf);
}

/** Those from the `first` to the `end`-th largest. */
function largestOf(first: number, end: number): Selection['keptOf'] {
  return (before, after) => Math.max(0, Math.min(end, after) - Math.max(first, before));
}

/** Each with the same chance. */
function drawnOf(chance: number): Selection['keptOf'] {
  return (before, after) => chance * (after - before);
}

/** A threshold, and the share of the elements equal to it that is kept. */
export interface ModelThreshold {
  threshold: number;
  share: number;
}

/** Where the `count` largest end, by the histogram and, inside its bin, by the sample. */
function thresholdAt(prepared: PreparedStatistics, index: number, count: number): ModelThreshold {
  const curve = prepared.curves[index]!;
  const bin = binAt(curve, count);
  const found =
    bin &&
    thresholdInBin([{ bins: prepared.bins(index), count: bin.inside }], bin.low, bin.high, count - bin.above);
  return found ?? { threshold: largest(curve, count).threshold, share: 1 };
}

function bandFrom(
  prepared: PreparedStatistics,
  index: number,
  outer: ModelThreshold,
  inner?: ModelThreshold,
): SampleSelection {
  const ties = ({ threshold, share }: ModelThreshold) =>
    Math.round(share * tiesOf(prepared.bins(index), threshold));
  return {
    kind: 'band',
    from: outer.threshold,
    below: inner?.threshold ?? Number.POSITIVE_INFINITY,
    ...(outer.share < 1 ? { ties: ties(outer) } : {}),
    ...(inner ? { dropped: ties(inner) } : {}),
  };
}

function selectionOf(
  prepared: PreparedStatistics,
  index: number,
  preset: DeltaPreset,
  model: ResolvedParameters,
  modelThreshold: ModelThreshold | undefined,
): Selection {
  const curve = prepared.curves[index]!;
  const { elements } = curve;
  const density = densityOf(model);
  const all = curve.norm ** 2;
  if (preset.select === 'all' || density >= 1) {
    return {
      kept: elements,
      threshold: 0,
      energy: all,
      error: EXACT,
      keptOf: drawnOf(1),
      sample: { kind: 'all' },
    };
  }
  if (density <= 0 || elements === 0) {
    return {
      kept: 0,
      threshold: 0,
      energy: 0,
      error: EXACT,
      keptOf: drawnOf(0),
      sample: { kind: 'random', chance: 0 },
    };
  }
  if (preset.select === 'random') {
    return {
      kept: Math.round(density * elements),
      threshold: 0,
      energy: density * all,
      error: drawError(curve, density),
      keptOf: drawnOf(density),
      sample: { kind: 'random', chance: density },
    };
  }
  if (preset.select === 'rank') {
    return rankSelection(prepared, index, density, Number(model.epsilon), preset.rescale === '1/probability');
  }
  if (preset.scope === 'model' && modelThreshold !== undefined) {
    const { threshold } = modelThreshold;
    const kept = keptAbove(prepared, index, modelThreshold);
    const { energy } = largest(curve, kept);
    const error = { kept: 0.2 * binShare(curve, threshold) + 1 / elements, energy: 0.1, threshold: 0.125 };
    const sample = bandFrom(prepared, index, modelThreshold);
    return { kept, threshold, energy, error, keptOf: largestOf(0, kept), sample };
  }
  const k = keptCount(density, elements);
  const dropped =
    preset.select === 'band' ? Math.min(Math.floor(Number(model.gamma) * elements), elements - k) : 0;
  const outer = thresholdAt(prepared, index, dropped + k);
  const inner = dropped > 0 ? thresholdAt(prepared, index, dropped) : undefined;
  return {
    kept: k,
    threshold: outer.threshold,
    energy: largest(curve, dropped + k).energy - largest(curve, dropped).energy,
    error: BINNED,
    keptOf: largestOf(dropped, dropped + k),
    sample: bandFrom(prepared, index, outer, inner),
  };
}

/** How many elements a threshold lets through: exactly above its bin, by the sample inside it. */
function keptAbove(
  prepared: PreparedStatistics,
  index: number,
  { threshold, share }: ModelThreshold,
): number {
  const curve = prepared.curves[index]!;
  const low = keyToMagnitude((patternOf(threshold) >>> 20) << 20);
  const high = keyToMagnitude(((patternOf(threshold) >>> 20) + 1) << 20);
  const bins = prepared.bins(index);
  const size = (from: number, below: number) => {
    const [first, end] = elementsBetween(bins, patternOf(from), patternOf(below));
    return end - first;
  };
  const inside = size(low, high);
  if (inside === 0) return above(curve, threshold).count;
  const [first, end] = elementsBetween(bins, patternOf(threshold) + 1, patternOf(high));
  const part = (end - first + share * tiesOf(bins, threshold)) / inside;
  return Math.round(above(curve, high).count + part * insideBin(curve, low));
}

/** MagPrune's chance grows with the rank; ranks in the tensor stand in for ranks in the row. */
function rankSelection(
  prepared: PreparedStatistics,
  index: number,
  density: number,
  epsilon: number,
  rescales: boolean,
): Selection {
  const curve = prepared.curves[index]!;
  const { elements, counts, energies } = curve;
  const chance = (count: number) => density + epsilon - (2 * epsilon * count) / elements;
  let [energy, rescaled] = [0, 0];
  for (let j = 1; j < counts.length; j++) {
    const part = energies[j]! - energies[j - 1]!;
    const q = chance((counts[j]! + counts[j - 1]!) / 2);
    energy += part * q;
    rescaled += q > 0 ? part / q : 0;
  }
  const chances = prepared.ranks(index).map(chance);
  return {
    kept: Math.round(density * elements),
    threshold: 0,
    energy,
    error: drawError(curve, density),
    keptOf: (before, after) => (after - before) * chance((before + after) / 2),
    ...(rescales ? { rescaled } : {}),
    sample: { kind: 'random', chance: chances },
  };
}
