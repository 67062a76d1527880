/** Selection of a contributor's task vector under given settings, predicted from its histogram and its sample. */

import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { ContributorReport } from '../../reports/job';
import type { DeltaPreset } from '../method';
import type { ResolvedParameters } from '../plan/plan';
import { band, densityOf } from '../tensor/delta-selectors';
import { keyToMagnitude } from '../tensor/radix-select';
import { keptSums, largest, type MagnitudeCurve, magnitudeCurve } from './magnitude-curve';
import { type ContributorError, shareError } from './predicted-report';
import {
  countFrom,
  drawsOf,
  type KeptSample,
  keepSample,
  orderSample,
  type SampleMerge,
  type SampleOrder,
} from './sample-merge';

/** Selection of a contributor under given settings. */
interface Selected {
  /** Another one for other settings. */
  key: string;
  report: ContributorReport;
  error: ContributorError;
  /** Factor of the kept values. */
  scale: number;
  /** What is kept of the sample. */
  sample(): KeptSample;
}

/**
 * The statistics of a tensor made ready, once, to be asked often. It remembers what it was asked last: most steps of a slider
 * change one contributor.
 */
export class PreparedStatistics {
  readonly statistics: DeltaStatistics;
  readonly curves: readonly MagnitudeCurve[];
  /** Cosines between contributors; a zero task vector has 0 with all. */
  readonly cosine: number[][];
  readonly #selected: (Selected | undefined)[] = [];
  readonly #orders: (SampleOrder | undefined)[] = [];
  #merged: { key: string; sample: SampleMerge } | undefined;

  constructor({ sample, ...statistics }: DeltaStatistics) {
    const finite = (values: Float32Array) => values.map((value) => (Number.isFinite(value) ? value : 0));
    this.statistics = {
      ...statistics,
      sample: statistics.nonFinite ? { ...sample, changes: sample.changes.map(finite) } : sample,
    };
    this.curves = statistics.contributors.map((_, i) => magnitudeCurve(this.statistics, i));
    this.cosine = this.curves.map((a, i) =>
      this.curves.map((b, j) => {
        const scale = a.norm * b.norm;
        return scale > 0 ? Math.max(-1, Math.min(1, statistics.products[i + 1]![j + 1]! / scale)) : 0;
      }),
    );
  }

  /**
   * Selection of contributor `index` under given settings.
   * @param modelKey the key of its threshold, where that is one of the whole model
   */
  selected(
    index: number,
    preset: DeltaPreset,
    model: ResolvedParameters,
    modelKey: number | undefined,
  ): Selected {
    const { select, rescale } = preset;
    const { density, epsilon, gamma } = model;
    const key = [select, rescale, density, epsilon, gamma, modelKey].join();
    const known = this.#selected[index];
    if (known?.key === key) return known;
    const selected = { key, ...this.#select(index, preset, model, modelKey) };
    this.#selected[index] = selected;
    return selected;
  }

  #select(
    index: number,
    preset: DeltaPreset,
    model: ResolvedParameters,
    modelKey: number | undefined,
  ): Omit<Selected, 'key'> {
    const curve = this.curves[index]!;
    const { kept, threshold, keptOf, error, keeps } = selectionOf(this, index, preset, model, modelKey);
    const { energy, rescaled, l1 } = keptSums(curve, keptOf);
    const byChance = preset.rescale === '1/probability' && kept < curve.elements;
    const keptNorm = Math.sqrt(energy);
    const scale =
      kept === 0 || kept >= curve.elements || preset.rescale === 'none'
        ? 1
        : preset.rescale === 'l1'
          ? l1
          : 1 / densityOf(model);
    // ‖·‖ = √energy; where only the rescaled norm is known, what is kept of the energy is about what is kept
    const share = byChance ? kept / curve.elements : energy / curve.norm ** 2;
    let sample: KeptSample | undefined;
    return {
      report: {
        id: this.statistics.contributors[index]!.id,
        kept,
        threshold,
        norm: curve.norm,
        keptNorm: byChance ? null : keptNorm,
        rescaledNorm: byChance ? Math.sqrt(rescaled) : scale * keptNorm,
      },
      error: { ...error, norm: error.energy / (2 * share || 1) },
      scale,
      sample: () => (sample ??= keepSample(this.statistics.sample.changes[index]!, keeps())),
    };
  }

  /** The merge of the sample under settings that a key names: until it is asked for under others. */
  merged(key: string, merge: () => SampleMerge): SampleMerge {
    if (this.#merged?.key !== key) this.#merged = { key, sample: merge() };
    return this.#merged.sample;
  }

  /** A contributor's sample by size. */
  order(index: number): SampleOrder {
    this.#orders[index] ??= orderSample(this.statistics.sample.changes[index]!);
    return this.#orders[index];
  }
}

interface Selection {
  kept: number;
  threshold: number;
  error: Omit<ContributorError, 'norm'>;
  /** How many are kept of those between the `before`-th and the `after`-th largest. */
  keptOf(before: number, after: number): number;
  /** Whether an element of the sample is kept. */
  keeps(): (element: number) => boolean;
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

function selectionOf(
  prepared: PreparedStatistics,
  index: number,
  preset: DeltaPreset,
  model: ResolvedParameters,
  modelKey: number | undefined,
): Selection {
  const curve = prepared.curves[index]!;
  const { elements } = curve;
  const size = prepared.statistics.sample.base.length;
  const density = densityOf(model);
  /** Those from the `first` to the `end`-th largest. */
  const between = (
    first: number,
    end: number,
    { threshold, ...error }: Selection['error'],
    at = largest(curve, end).threshold,
  ): Selection => ({
    kept: end - first,
    threshold: threshold > 0 ? at : 0,
    error: { ...error, threshold },
    keptOf: (before, after) => Math.max(0, Math.min(end, after) - Math.max(first, before)),
    keeps() {
      if (first === 0 && end === elements) return () => true;
      const { ranks } = prepared.order(index);
      const [from, below] = [first, end].map((rank) => Math.round((rank * size) / elements)) as [
        number,
        number,
      ];
      return (e) => ranks[e]! >= from && ranks[e]! < below;
    },
  });
  if (preset.select === 'all' || density >= 1) return between(0, elements, EXACT);
  if (density <= 0 || elements === 0) return between(0, 0, EXACT);
  if (preset.select === 'random' || preset.select === 'rank') {
    // MagPrune's chance grows with the rank; ranks in the tensor stand in for ranks in the row
    const epsilon = preset.select === 'rank' ? Number(model.epsilon) : 0;
    const chance = (larger: number) => density + epsilon - 2 * epsilon * larger;
    return {
      kept: Math.round(density * elements),
      threshold: 0,
      error: drawError(curve, density),
      keptOf: (before, after) => (after - before) * chance((before + after) / 2 / elements),
      keeps() {
        const draws = drawsOf(size, index);
        if (epsilon === 0) return (e) => draws[e]! < density;
        const { ranks } = prepared.order(index);
        return (e) => draws[e]! < chance(ranks[e]! / size);
      },
    };
  }
  if (modelKey !== undefined) {
    const share = countFrom(prepared.order(index), modelKey) / size;
    const error = { kept: shareError(share, size, Number.POSITIVE_INFINITY), energy: 0.1, threshold: 0.125 };
    return between(0, Math.round(share * elements), error, keyToMagnitude(modelKey));
  }
  const [outer, inner] = band(preset, model, elements);
  return between(inner, outer, BINNED);
}

/**
 * Key of a contributor's threshold over all of its tensors, by their samples: what is as large stays, one more than ⌊ρN⌋ of N.
 * @param members its tensors, and its index in each
 */
export function modelThreshold(members: readonly [PreparedStatistics, number][], density: number): number {
  const samples = members.flatMap(([of, index]) => {
    const { keys, ranks } = of.order(index);
    return keys.length > 0 ? [{ keys, ranks, weight: of.statistics.elements / keys.length }] : [];
  });
  const all = samples.reduce((sum, { keys, weight }) => sum + keys.length * weight, 0);
  const wanted = Math.min(all, Math.floor(density * all) + 1);
  let [holds, fails] = [0, 0x7fffffff];
  while (fails - holds > 1) {
    const middle = Math.floor((holds + fails) / 2);
    const there = samples.reduce((sum, of) => sum + of.weight * countFrom(of, middle), 0);
    if (there >= wanted) holds = middle;
    else fails = middle;
  }
  return holds;
}
