/**
 * Predicted report of a merge, from delta statistics alone: thresholds and kept shares from histograms, joint values of several
 * models from the samples, norms and cosines from the exact products. Quick, so that a slider can redraw every chart while it
 * moves (docs/predictions.md says how close it comes).
 */

import type { Recipe } from '../../formats/recipe';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { ContributorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import { type DeltaPreset, drawsRandomly, type MergeMethod, type ProductsCompute } from '../method';
import { densityOf } from '../tensor/delta-selectors';
import { groupsOf } from '../tensor/tiles';
import { EXACT, type ModelThreshold, PreparedStatistics } from './contributor-selection';
import { binAt, insideBin, largest, type MagnitudeCurve, mergeCurves } from './magnitude-curve';
import { LazyReport, type PredictedReport } from './predicted-report';
import { type PredictionSettings, recipeSettings } from './recipe-settings';
import { replayedAtBase, replayedChange, replayedShared, staysAtBase } from './replayed-sample';
import { sameItems } from './same-items';
import { onesOf, sampleConflict, thresholdInBin } from './sample-selection';

/** Selectors that look at one contributor's magnitudes alone. */
const PREDICTABLE: ReadonlySet<DeltaPreset['select']> = new Set(['all', 'top-k', 'random', 'rank', 'band']);

/** A plan's tensors, what was measured of them, and the recipe of whole models that is asked about. */
interface PredictionRequest {
  measured: readonly DeltaStatistics[];
  planned: readonly PlanTensor[];
  /** Blocks of the output. */
  layers: number;
  recipe: Recipe;
  method: MergeMethod;
}

/**
 * Predictor of one run. It caches the prepared statistics and its last result: a step of a slider changes little, and several
 * parts of a page may ask for the same.
 */
export class Predictor {
  readonly #prepared = new WeakMap<DeltaStatistics, PreparedStatistics>();
  /** By contributor, the curves of all tensors as one. */
  readonly #wholeCurves = new Map<string, { of: readonly MagnitudeCurve[]; curve: MagnitudeCurve }>();
  #planned: (MeasuredPlan & { statistics: readonly DeltaStatistics[] }) | undefined;
  #last: { of: PredictionRequest; reports: ReadonlyMap<string, PredictedReport> } | undefined;

  /** The report of every measured tensor that the plan would compute, by name. */
  predict(request: PredictionRequest): ReadonlyMap<string, PredictedReport> {
    const { recipe, method, layers } = request;
    const last = this.#last;
    // another object with the same settings: a slider of another run moved
    const isSame = last && samePlan(last.of, request) && sameRecipe(last.of.recipe, recipe);
    const reports = isSame
      ? last.reports
      : new Map(
          this.predictTensors(
            this.#plannedStatistics(request),
            method,
            recipeSettings(recipe, method, layers),
          ).map((report) => [report.name, report]),
        );
    this.#last = { of: request, reports };
    return reports;
  }

  /**
   * The report of every tensor.
   * @param settingsOf resolved values of a tensor; tensors without are left out
   */
  predictTensors(
    all: readonly DeltaStatistics[],
    method: MergeMethod,
    settingsOf: (statistics: DeltaStatistics) => PredictionSettings | undefined,
  ): PredictedReport[] {
    const prepared: PreparedStatistics[] = [];
    const settings: PredictionSettings[] = [];
    for (const statistics of all) {
      const of = settingsOf(statistics);
      if (!of) continue;
      prepared.push(this.#prepare(statistics));
      settings.push(of);
    }
    const { compute } = method;
    if (compute.kind === 'weights') {
      return prepared.map((p, t) => {
        const c = compute.coefficients(settings[t]!.models, settings[t]!.parameters);
        return predictedSum(p, [c.reduce((a, b) => a + b, 0) - 1, ...c]);
      });
    }
    if (compute.kind === 'products') {
      return prepared.map((p, t) => {
        const c = productsChange(p, compute, settings[t]!);
        return c ? predictedSum(p, c) : predictedChanges(p);
      });
    }
    if (compute.kind !== 'delta') return prepared.map(predictedChanges);
    // most recipes have the same settings for every tensor
    const known = new Map<PredictionSettings, DeltaPreset>();
    const presets = settings.map((s) => {
      const preset = known.get(s) ?? compute.preset(s.parameters);
      known.set(s, preset);
      return preset;
    });
    const wholeModel = presets.some((p) => p.scope === 'model')
      ? this.#modelThresholds(prepared, settings)
      : undefined;
    return prepared.map((p, t) =>
      PREDICTABLE.has(presets[t]!.select)
        ? predictedDelta(p, presets[t]!, settings[t]!, wholeModel)
        : predictedChanges(p),
    );
  }

  /**
   * Which elements of the sample a contributor keeps: 1 or 0 in the sample's order. Undefined where the method does not
   * select by contributor, or by a threshold of the whole model.
   */
  mask(
    statistics: DeltaStatistics,
    method: MergeMethod,
    settings: PredictionSettings,
    index: number,
  ): Uint8Array | undefined {
    if (method.compute.kind !== 'delta') return undefined;
    const preset = method.compute.preset(settings.parameters);
    if (!PREDICTABLE.has(preset.select) || preset.scope === 'model') return undefined;
    const prepared = this.#prepare(statistics);
    const selected = prepared.selected(index, preset, settings.models[index]!, undefined);
    const { positive, negative } = prepared.keptSample(index, selected);
    const size = statistics.sample.base.length;
    return Uint8Array.from(
      { length: size },
      (_, e) => ((positive[e >> 5]! | negative[e >> 5]!) >>> (e & 31)) & 1,
    );
  }

  #prepare(statistics: DeltaStatistics): PreparedStatistics {
    const known = this.#prepared.get(statistics);
    if (known) return known;
    const made = new PreparedStatistics(statistics);
    this.#prepared.set(statistics, made);
    return made;
  }

  /** The statistics of tensors that the plan would compute; the same ones for the same plan. */
  #plannedStatistics({ measured, planned }: PredictionRequest): readonly DeltaStatistics[] {
    if (!this.#planned || !samePlan(this.#planned, { measured, planned })) {
      const merged = new Map(planned.filter((t) => !t.copied).map((t) => [t.name, t]));
      const statistics = measured.flatMap((t) => {
        const plan = merged.get(t.name);
        if (!plan) return [];
        // the output's dtype decides which small changes are rounded away
        return plan.dtype === t.dtype ? t : { ...t, dtype: plan.dtype };
      });
      this.#planned = { measured, planned, statistics };
    }
    return this.#planned.statistics;
  }

  /** The threshold of every contributor over all tensors, at its density in the first of them. */
  #modelThresholds(
    prepared: readonly PreparedStatistics[],
    settings: readonly PredictionSettings[],
  ): ReadonlyMap<string, ModelThreshold> {
    const own = new Map<string, { members: [PreparedStatistics, number][]; density: number }>();
    for (const [t, of] of prepared.entries()) {
      for (const [i, { id }] of of.statistics.contributors.entries()) {
        const known = own.get(id);
        if (known) known.members.push([of, i]);
        else own.set(id, { members: [[of, i]], density: densityOf(settings[t]!.models[i]!) });
      }
    }
    return new Map(
      [...own].map(([id, { members, density }]) => {
        const curve = this.#wholeCurve(
          id,
          members.map(([of, i]) => of.curves[i]!),
        );
        const count = Math.floor(density * curve.elements) + 1;
        const bin = binAt(curve, count);
        const inBin = bin
          ? members.map(([of, i]) => ({ bins: of.bins(i), count: insideBin(of.curves[i]!, bin.low) }))
          : [];
        const found = bin && thresholdInBin(inBin, bin.low, bin.high, count - bin.above);
        // all that equal the threshold stay
        const threshold = found?.threshold ?? largest(curve, count).threshold;
        return [id, { threshold, share: 1 }];
      }),
    );
  }

  #wholeCurve(id: string, all: readonly MagnitudeCurve[]): MagnitudeCurve {
    const known = this.#wholeCurves.get(id);
    if (known && sameItems(known.of, all)) return known.curve;
    const curve = mergeCurves(all);
    this.#wholeCurves.set(id, { of: all, curve });
    return curve;
  }
}

type MeasuredPlan = Pick<PredictionRequest, 'measured' | 'planned'>;

function samePlan(a: MeasuredPlan, b: MeasuredPlan): boolean {
  return a.measured === b.measured && a.planned === b.planned;
}

function sameRecipe(a: Recipe, b: Recipe): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function predictedDelta(
  prepared: PreparedStatistics,
  preset: DeltaPreset,
  settings: PredictionSettings,
  wholeModel: ReadonlyMap<string, ModelThreshold> | undefined,
): PredictedReport {
  const { statistics } = prepared;
  const { elements, sample } = statistics;
  const kept = statistics.contributors.map(({ id }, i) =>
    prepared.selected(i, preset, settings.models[i]!, wholeModel?.get(id)),
  );
  const contributions = () =>
    kept.map((of, i) => ({
      kept: prepared.keptSample(i, of),
      share: of.report.kept / elements,
      weight: Number(settings.models[i]!.weight ?? 1),
    }));
  const replayed = () => prepared.replay(preset, contributions());
  return new LazyReport(
    {
      statistics,
      cosine: prepared.cosine,
      contributors: kept.map((k) => k.report),
      errors: kept.map((k) => k.error),
      predicted: 'merge',
      exactChange: false,
      isRandom: drawsRandomly(preset),
    },
    {
      signConflict: () => sampleConflict(sample.base.length, preset, contributions()),
      outputChange: () => replayedChange(statistics, replayed()),
      counts() {
        const scale = elements / sample.base.length;
        let shared: number[][] | undefined;
        let lost: number[] | undefined;
        let atBase: number | undefined;
        // a chart shows one of them
        return {
          get atBase() {
            atBase ??= replayedAtBase(statistics, replayed()) * elements;
            return atBase;
          },
          get shared() {
            shared ??= replayedShared(replayed()).map((row) => row.map((n) => n * scale));
            return shared;
          },
          get lost() {
            lost ??= preset.consensus === 'none' ? [] : replayed().lost.map((bits) => onesOf(bits) * scale);
            return lost;
          },
        };
      },
    },
  );
}

/** W₀ + (Σcᵢ − 1)·W₀ + Σ cᵢτᵢ: the change is known exactly. @param c of W₀ and of every τ */
function predictedSum(prepared: PreparedStatistics, c: readonly number[]): PredictedReport {
  const { statistics } = prepared;
  const change = changeOf(statistics, c);
  return new LazyReport(
    { ...outline(prepared), predicted: 'merge', exactChange: true },
    {
      signConflict: () => 0,
      outputChange: () => change,
      counts: () => ({ atBase: sumAtBase(statistics, c) * statistics.elements, shared: [], lost: [] }),
    },
  );
}

/** The share of the sample that Σ cᵢvᵢ leaves at the base. */
function sumAtBase({ sample: { base, changes }, dtype }: DeltaStatistics, c: readonly number[]): number {
  let staying = 0;
  for (let e = 0; e < base.length; e++) {
    let delta = c[0]! * base[e]!;
    for (let i = 0; i < changes.length; i++) delta += c[i + 1]! * changes[i]![e]!;
    if (delta === 0 || staysAtBase(base[e]!, delta, dtype)) staying++;
  }
  return base.length > 0 ? staying / base.length : 0;
}

/**
 * Result of a method on scalar products, as coefficients of W₀ and of every τ on top of W₀; undefined where it looks at rows or
 * columns, or has no result.
 */
function productsChange(
  { statistics: { products, shape } }: PreparedStatistics,
  compute: ProductsCompute,
  { parameters, models }: PredictionSettings,
): number[] | undefined {
  if (groupsOf(compute.groups?.(parameters, shape) ?? 'tensor', shape) !== 'tensor') return undefined;
  const n = models.length;
  const changes = compute.vectors !== 'weights';
  // ⟨W₀ + τᵢ, W₀ + τⱼ⟩, τ₀ being 0
  const weight = (i: number, j: number) =>
    products[0]![0]! +
    (i ? products[0]![i]! : 0) +
    (j ? products[0]![j]! : 0) +
    (i && j ? products[i]![j]! : 0);
  const found = compute.coefficients(
    changes ? { count: n, at: (i, j) => products[i + 1]![j + 1]! } : { count: n + 1, at: weight },
    models,
    parameters,
  );
  if (!Array.isArray(found)) return undefined;
  return changes ? [0, ...found] : [found.reduce((a, b) => a + b, 0) - 1, ...found.slice(1)];
}

function predictedChanges(prepared: PreparedStatistics): PredictedReport {
  return new LazyReport(
    { ...outline(prepared), predicted: 'changes', exactChange: false },
    { signConflict: () => 0, outputChange: () => 0, counts: () => undefined },
  );
}

/** All of every task vector. */
function outline({ statistics, curves, cosine }: PreparedStatistics) {
  const contributors = statistics.contributors.map(({ id }, i): ContributorReport => {
    const { norm } = curves[i]!;
    return { id, kept: statistics.elements, threshold: 0, norm, keptNorm: norm };
  });
  return { statistics, cosine, contributors, errors: contributors.map(() => EXACT) };
}

/** ‖Σ cᵢvᵢ‖ / ‖W₀‖ by the products of the vectors. */
function changeOf({ products }: DeltaStatistics, c: readonly number[]): number {
  let square = 0;
  for (const [i, row] of products.entries()) {
    for (const [j, product] of row.entries()) square += c[i]! * c[j]! * product;
  }
  const base = products[0]![0]!;
  return base > 0 ? Math.sqrt(Math.max(0, square) / base) : 0;
}
