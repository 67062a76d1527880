/**
 * What a merge would report, from profiles alone: thresholds and kept shares from histograms, what depends on several
 * models from the samples, norms and cosines from the exact products. Pure and quick, so that a slider can redraw
 * every chart while it moves (docs/profiles.md says how close it comes).
 */
import type { ContributorReport } from '../../reports/job';
import type { TensorProfile } from '../../reports/profile';
import type { DeltaPreset, MergeMethod } from '../method';
import type { ResolvedParameters } from '../plan/plan';
import { keptCount } from '../tensor/radix-select';
import { type JudgedSample, judgedChange, judgeSample } from './foretell-change';
import { type ForetoldReport, LazyReport } from './foretell-report';
import {
  type KeptSample,
  keptSample,
  patternsOf,
  type SampleSelection,
  type SizedSample,
  sampleConflict,
  steppedSample,
} from './foretell-sample';
import { above, largest, type MagnitudeCurve, magnitudeCurve, mergeCurves } from './profile-curve';
import { type SampleBins, sampleBins } from './sample-bins';

/** A profile made ready: do it once, foretell often. */
export interface PreparedProfile {
  profile: TensorProfile;
  curves: MagnitudeCurve[];
  /** Cosines between contributors; a zero task vector has 0 with all. */
  cosine: number[][];
  /** What each contributor kept last: most steps of a slider change one of them. */
  latest: (Selected | undefined)[];
  /** The sample of each contributor by magnitude, once a slider moved it. */
  bins: (SampleBins | undefined)[];
  /** The sample as it was judged last. */
  judged?: JudgedSample;
}

/** Values for one tensor, as resolved from the recipe; models in the profile's order. */
export interface ForetoldSettings {
  parameters: ResolvedParameters;
  models: readonly ResolvedParameters[];
}

/** Selectors that look at one contributor's magnitudes alone. */
const FORETOLD: ReadonlySet<DeltaPreset['select']> = new Set(['all', 'top-k', 'random', 'rank', 'band']);

export function prepareProfile(profile: TensorProfile): PreparedProfile {
  const curves = profile.contributors.map((_, i) => magnitudeCurve(profile, i));
  const cosine = curves.map((a, i) =>
    curves.map((b, j) => {
      const scale = a.norm * b.norm;
      return scale > 0 ? Math.max(-1, Math.min(1, profile.products[i + 1]![j + 1]! / scale)) : 0;
    }),
  );
  return { profile, curves, cosine, latest: [], bins: [] };
}

/**
 * Foretells every tensor.
 * @param settingsOf resolved values of a tensor; tensors without are left out
 */
export function foretell(
  all: readonly PreparedProfile[],
  method: MergeMethod,
  settingsOf: (profile: TensorProfile) => ForetoldSettings | undefined,
): ForetoldReport[] {
  const prepared: PreparedProfile[] = [];
  const settings: ForetoldSettings[] = [];
  for (const p of all) {
    const of = settingsOf(p.profile);
    if (!of) continue;
    prepared.push(p);
    settings.push(of);
  }
  const { compute } = method;
  if (compute.kind === 'weights') {
    return prepared.map((p, t) =>
      foretoldSum(p, compute.coefficients(settings[t]!.models, settings[t]!.parameters)),
    );
  }
  if (compute.kind !== 'delta') return prepared.map(foretoldChanges);
  // most recipes say the same of every tensor
  const known = new Map<ForetoldSettings, DeltaPreset>();
  const presets = settings.map((s) => {
    const preset = known.get(s) ?? compute.preset(s.parameters);
    known.set(s, preset);
    return preset;
  });
  const wholeModel = presets.some((p) => p.scope === 'model')
    ? modelThresholds(prepared, settings)
    : undefined;
  return prepared.map((p, t) =>
    FORETOLD.has(presets[t]!.select)
      ? foretoldDelta(p, presets[t]!, settings[t]!, wholeModel)
      : foretoldChanges(p),
  );
}

/**
 * Which elements of the sample a contributor keeps: 1 or 0 in the sample's order. Undefined where the method does not
 * select by contributor, or by a threshold of the whole model.
 */
export function foretellMask(
  prepared: PreparedProfile,
  method: MergeMethod,
  settings: ForetoldSettings,
  index: number,
): Uint8Array | undefined {
  if (method.compute.kind !== 'delta') return undefined;
  const preset = method.compute.preset(settings.parameters);
  if (!FORETOLD.has(preset.select) || preset.scope === 'model') return undefined;
  const { positive, negative } = placesOf(
    prepared,
    index,
    selected(prepared, index, preset, settings.models[index]!, undefined),
  );
  const size = prepared.profile.sample.base.length;
  return Uint8Array.from(
    { length: size },
    (_, e) => ((positive[e >> 5]! | negative[e >> 5]!) >>> (e & 31)) & 1,
  );
}

/** The threshold of every contributor over all tensors, at its density in the first of them. */
function modelThresholds(
  prepared: readonly PreparedProfile[],
  settings: readonly ForetoldSettings[],
): ReadonlyMap<string, number> {
  const curves = new Map<string, { all: MagnitudeCurve[]; density: number }>();
  for (const [t, { profile, curves: own }] of prepared.entries()) {
    for (const [i, { id }] of profile.contributors.entries()) {
      const known = curves.get(id);
      if (known) known.all.push(own[i]!);
      else curves.set(id, { all: [own[i]!], density: Number(settings[t]!.models[i]!.density ?? 1) });
    }
  }
  return new Map(
    [...curves].map(([id, { all, density }]) => {
      const curve = wholeCurve(all);
      return [id, largest(curve, Math.floor(density * curve.elements) + 1).threshold];
    }),
  );
}

const wholeCurves = new WeakMap<MagnitudeCurve, { of: readonly MagnitudeCurve[]; curve: MagnitudeCurve }>();

/** The curves of all tensors as one, worked out once for the same tensors. */
function wholeCurve(all: readonly MagnitudeCurve[]): MagnitudeCurve {
  const known = wholeCurves.get(all[0]!);
  if (known?.of.length === all.length && known.of.every((curve, i) => curve === all[i])) return known.curve;
  const curve = mergeCurves(all);
  wholeCurves.set(all[0]!, { of: all, curve });
  return curve;
}

function foretoldDelta(
  prepared: PreparedProfile,
  preset: DeltaPreset,
  settings: ForetoldSettings,
  wholeModel: ReadonlyMap<string, number> | undefined,
): ForetoldReport {
  const { profile } = prepared;
  const kept = profile.contributors.map(({ id }, i) =>
    selected(prepared, i, preset, settings.models[i]!, wholeModel?.get(id)),
  );
  const contributions = () =>
    kept.map((of, i) => ({
      kept: placesOf(prepared, i, of),
      share: of.report.kept / profile.elements,
      weight: Number(settings.models[i]!.weight ?? 1),
    }));
  return new LazyReport(
    prepared,
    kept.map((k) => k.report),
    'merge',
    {
      signConflict: () => sampleConflict(profile.sample.base.length, preset, contributions()),
      outputChange() {
        prepared.judged = judgeSample(profile, preset, contributions(), prepared.judged);
        return judgedChange(profile, prepared.judged);
      },
    },
  );
}

/** What a contributor keeps under certain settings. */
interface Selected {
  preset: DeltaPreset;
  model: ResolvedParameters;
  modelThreshold: number | undefined;
  report: ContributorReport;
  selection: SampleSelection;
  /** Which elements of the sample; worked out when it is first asked for. */
  places: KeptSample | SizedSample | undefined;
  /** What was kept by size before this, for the step from there. */
  before: SizedSample | undefined;
}

function selected(
  { profile, curves, latest }: PreparedProfile,
  index: number,
  preset: DeltaPreset,
  model: ResolvedParameters,
  modelThreshold: number | undefined,
): Selected {
  const known = latest[index];
  if (
    known &&
    known.modelThreshold === modelThreshold &&
    known.preset.select === preset.select &&
    known.preset.scope === preset.scope &&
    known.model.density === model.density &&
    known.model.epsilon === model.epsilon &&
    known.model.gamma === model.gamma
  ) {
    return known;
  }
  const curve = curves[index]!;
  const values = profile.sample.changes[index]!;
  const { kept, threshold, energy, sample } = selectionOf(preset, curve, values, model, modelThreshold);
  const made: Selected = {
    preset,
    model,
    modelThreshold,
    report: {
      id: profile.contributors[index]!.id,
      kept,
      threshold,
      norm: curve.norm,
      keptNorm: Math.sqrt(energy),
    },
    selection: sample,
    places: undefined,
    before: known && lastSample(known),
  };
  latest[index] = made;
  return made;
}

/** The newest sample that was worked out by size. */
function lastSample({ places, before }: Selected): SizedSample | undefined {
  return places && 'band' in places ? places : before;
}

/** Which elements of the sample contributor `index` keeps. */
function placesOf({ profile, bins }: PreparedProfile, index: number, of: Selected): KeptSample {
  if (of.places) return of.places;
  const values = profile.sample.changes[index]!;
  const { selection, before } = of;
  if (before && selection.kind !== 'random') {
    bins[index] ??= sampleBins(patternsOf(values));
    of.places = steppedSample(bins[index], selection, before);
  } else {
    of.places = keptSample(values, selection, index);
  }
  of.before = undefined;
  return of.places;
}

interface Selection {
  kept: number;
  threshold: number;
  energy: number;
  sample: SampleSelection;
}

function selectionOf(
  preset: DeltaPreset,
  curve: MagnitudeCurve,
  values: Float32Array,
  model: ResolvedParameters,
  modelThreshold: number | undefined,
): Selection {
  const { elements } = curve;
  const density = Number(model.density ?? 1);
  const all = curve.norm ** 2;
  if (preset.select === 'all' || density >= 1) {
    return { kept: elements, threshold: 0, energy: all, sample: { kind: 'all' } };
  }
  if (density <= 0 || elements === 0) {
    return { kept: 0, threshold: 0, energy: 0, sample: { kind: 'random', probability: () => 0 } };
  }
  if (preset.select === 'random') {
    const probability = () => density;
    return {
      kept: Math.round(density * elements),
      threshold: 0,
      energy: density * all,
      sample: { kind: 'random', probability },
    };
  }
  if (preset.select === 'rank') return rankSelection(curve, values, density, Number(model.epsilon));
  if (preset.scope === 'model' && modelThreshold !== undefined) {
    const { count, energy } = above(curve, modelThreshold);
    const sample = { kind: 'band', from: modelThreshold, below: Number.POSITIVE_INFINITY } as const;
    return { kept: count, threshold: modelThreshold, energy, sample };
  }
  const k = keptCount(density, elements);
  const dropped =
    preset.select === 'band' ? Math.min(Math.floor(Number(model.gamma) * elements), elements - k) : 0;
  const outer = largest(curve, dropped + k);
  const inner = largest(curve, dropped);
  return {
    kept: k,
    threshold: outer.threshold,
    energy: outer.energy - inner.energy,
    sample: {
      kind: 'band',
      from: outer.threshold,
      below: dropped > 0 ? inner.threshold : Number.POSITIVE_INFINITY,
    },
  };
}

/** MagPrune's chance grows with the rank; ranks in the tensor stand in for ranks in the row. */
function rankSelection(
  curve: MagnitudeCurve,
  values: Float32Array,
  density: number,
  epsilon: number,
): Selection {
  const { elements, counts, energies } = curve;
  const chance = (count: number) => density + epsilon - (2 * epsilon * count) / elements;
  let energy = 0;
  for (let j = 1; j < counts.length; j++) {
    energy += (energies[j]! - energies[j - 1]!) * chance((counts[j]! + counts[j - 1]!) / 2);
  }
  const ranks = ranksOf(curve, values);
  const probability = (place: number) => chance(ranks[place]!);
  return {
    kept: Math.round(density * elements),
    threshold: 0,
    energy,
    sample: { kind: 'random', probability },
  };
}

const ranked = new WeakMap<MagnitudeCurve, Float64Array>();

/** For every sampled value, how many elements of the tensor are larger. */
function ranksOf(curve: MagnitudeCurve, values: Float32Array): Float64Array {
  const known = ranked.get(curve);
  if (known) return known;
  const ranks = Float64Array.from(values, (v) => above(curve, Math.abs(v)).count);
  ranked.set(curve, ranks);
  return ranks;
}

/** Σ cᵢWᵢ = W₀ + (Σcᵢ − 1)·W₀ + Σ cᵢτᵢ: the change is known exactly. */
function foretoldSum(prepared: PreparedProfile, coefficients: readonly number[]): ForetoldReport {
  const sum = coefficients.reduce((a, b) => a + b, 0);
  const change = changeOf(prepared.profile, [sum - 1, ...coefficients]);
  return new LazyReport(prepared, whole(prepared), 'merge', {
    signConflict: () => 0,
    outputChange: () => change,
  });
}

function foretoldChanges(prepared: PreparedProfile): ForetoldReport {
  return new LazyReport(prepared, whole(prepared), 'changes', {
    signConflict: () => 0,
    outputChange: () => 0,
  });
}

function whole({ profile, curves }: PreparedProfile): ContributorReport[] {
  return profile.contributors.map(({ id }, i) => {
    const { norm } = curves[i]!;
    return { id, kept: profile.elements, threshold: 0, norm, keptNorm: norm };
  });
}

/** ‖Σ cᵢvᵢ‖ / ‖W₀‖ by the products of the vectors. */
function changeOf({ products }: TensorProfile, c: readonly number[]): number {
  let square = 0;
  for (const [i, row] of products.entries()) {
    for (const [j, product] of row.entries()) square += c[i]! * c[j]! * product;
  }
  const base = products[0]![0]!;
  return base > 0 ? Math.sqrt(Math.max(0, square) / base) : 0;
}
