/**
 * Predicted report of a merge, from delta statistics alone: thresholds and kept shares from histograms, joint values of several
 * models from the samples, norms and cosines from the exact products. Quick, so that a slider can redraw every chart while it
 * moves (docs/predictions.md says how close it comes).
 */

import type { Recipe } from '../../formats/recipe';
import type { DeltaStatistics, TensorSample } from '../../reports/delta-statistics';
import type { ContributorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import { type DeltaPreset, drawsRandomly, type MergeMethod, type ProductsCompute } from '../method';
import { densityOf } from '../tensor/delta-selectors';
import { ratio } from '../tensor/tensor-outcome';
import { groupsOf } from '../tensor/tiles';
import { EXACT, modelThreshold, PreparedStatistics } from './contributor-selection';
import { LazyReport, type PredictedReport } from './predicted-report';
import { type PredictionSettings, recipeSettings } from './recipe-settings';
import { mergeSample, type SampleMerge, sampleConflicts, sampleShared, staysAtBase } from './sample-merge';

/** Selectors that look at one contributor's magnitudes alone. */
const PREDICTABLE: ReadonlySet<DeltaPreset['select']> = new Set(['all', 'top-k', 'random', 'rank', 'band']);

/** Samples are of weights, not of coordinates in another space. */
const isPredictable = ({ select, space }: DeltaPreset) => PREDICTABLE.has(select) && space !== 'knots';

/** A plan's tensors, what was measured of them, and the recipe of whole models that is asked about. */
interface PredictionRequest {
  measured: readonly DeltaStatistics[];
  planned: readonly PlanTensor[];
  /** Blocks of the output. */
  layers: number;
  recipe: Recipe;
  method: MergeMethod;
}

/** Results that are remembered: one for each run of a page, and those of a slider that comes back. */
const MOST_KNOWN = 32;

/**
 * Predictor of merges. It remembers statistics made ready and its last results: a step of a slider changes one run, and several
 * parts of a page ask for the same.
 */
export class Predictor {
  readonly #prepared = new WeakMap<TensorSample, PreparedStatistics>();
  #of: Pick<PredictionRequest, 'measured' | 'planned'> | undefined;
  /** Reports by recipe, the last asked for last. */
  readonly #known = new Map<string, ReadonlyMap<string, PredictedReport>>();

  /** The report of every measured tensor that the plan would compute, by name; the same object for the same settings. */
  predict(request: PredictionRequest): ReadonlyMap<string, PredictedReport> {
    const { measured, planned, recipe } = request;
    if (this.#of?.measured !== measured || this.#of.planned !== planned) this.#known.clear();
    this.#of = { measured, planned };
    const key = JSON.stringify(recipe);
    const reports = this.#known.get(key) ?? this.#predict(request);
    this.#known.delete(key);
    this.#known.set(key, reports);
    if (this.#known.size > MOST_KNOWN) this.#known.delete(this.#known.keys().next().value!);
    return reports;
  }

  #predict({ measured, planned, layers, recipe, method }: PredictionRequest) {
    const merged = new Map(planned.filter((t) => !t.copied).map((t) => [t.name, t]));
    const statistics = measured.flatMap((t) => {
      const plan = merged.get(t.name);
      // the output's dtype decides which small changes are rounded away
      return plan ? { ...t, dtype: plan.dtype } : [];
    });
    const reports = this.predictTensors(statistics, method, recipeSettings(recipe, method, layers));
    return new Map(reports.map((report) => [report.name, report]));
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
    const tensors = all.flatMap((statistics): PredictedTensor[] => {
      const settings = settingsOf(statistics);
      if (!settings) return [];
      return [{ prepared: this.#prepare(statistics), dtype: statistics.dtype, settings }];
    });
    const { compute } = method;
    if (compute.kind === 'weights') {
      return tensors.map((tensor) => {
        const { models, parameters } = tensor.settings;
        const c = compute.coefficients(models, parameters);
        return predictedSum(tensor, [c.reduce((a, b) => a + b, 0) - 1, ...c]);
      });
    }
    if (compute.kind === 'products') {
      return tensors.map((tensor) => {
        const c = productsChange(tensor, compute);
        return c ? predictedSum(tensor, c) : predictedChanges(tensor);
      });
    }
    if (compute.kind !== 'delta') return tensors.map(predictedChanges);
    // most recipes have the same settings for every tensor
    const presets = new Map<PredictionSettings, DeltaPreset>();
    for (const { settings } of tensors) {
      // written and read, presets of a method are of one shape: what is compiled for a step holds for the next
      if (!presets.has(settings)) {
        presets.set(settings, JSON.parse(JSON.stringify(compute.preset(settings.parameters))));
      }
    }
    const wholeModel = [...presets.values()].some((p) => p.scope === 'model')
      ? modelThresholds(tensors)
      : undefined;
    return tensors.map((tensor) => {
      const preset = presets.get(tensor.settings)!;
      return isPredictable(preset) ? predictedDelta(tensor, preset, wholeModel) : predictedChanges(tensor);
    });
  }

  #prepare(statistics: DeltaStatistics): PreparedStatistics {
    const known = this.#prepared.get(statistics.sample);
    if (known) return known;
    const made = new PreparedStatistics(statistics);
    this.#prepared.set(statistics.sample, made);
    return made;
  }
}

interface PredictedTensor {
  prepared: PreparedStatistics;
  /** Of the output. */
  dtype: string;
  settings: PredictionSettings;
}

/** The threshold of every contributor over all tensors, at its density in the first of them. */
function modelThresholds(tensors: readonly PredictedTensor[]): ReadonlyMap<string, number> {
  const own = new Map<string, { members: [PreparedStatistics, number][]; density: number }>();
  for (const { prepared, settings } of tensors) {
    for (const [i, { id }] of prepared.statistics.contributors.entries()) {
      const known = own.get(id);
      if (known) known.members.push([prepared, i]);
      else own.set(id, { members: [[prepared, i]], density: densityOf(settings.models[i]!) });
    }
  }
  return new Map([...own].map(([id, { members, density }]) => [id, modelThreshold(members, density)]));
}

function predictedDelta(
  { prepared, dtype, settings }: PredictedTensor,
  preset: DeltaPreset,
  wholeModel: ReadonlyMap<string, number> | undefined,
): PredictedReport {
  const { statistics } = prepared;
  const { sample, products } = statistics;
  const kept = statistics.contributors.map(({ id }, i) =>
    prepared.selected(i, preset, settings.models[i]!, wholeModel?.get(id)),
  );
  const weights = settings.models.map((model) => Number(model.weight ?? 1));
  const contributions = () =>
    kept.map(({ sample, scale }, i) => ({
      kept: sample(),
      scale,
      weight: weights[i]!,
    }));
  let known: SampleMerge | undefined;
  const merged = () => {
    if (known) return known;
    // the weight of a model that changes nothing here has no effect, unless the sum of all weights divides
    const all = preset.normalize && preset.consensus === 'none';
    const own = kept.map(({ key, report }, i) => (all || report.norm > 0) && [key, weights[i]]);
    known = prepared.merged(JSON.stringify([dtype, preset, own]), () =>
      mergeSample(sample, dtype, preset, contributions()),
    );
    return known;
  };
  /** Elements of the tensor that one of the sample stands for. */
  const each = statistics.elements / (sample.base.length || 1);
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
    dtype,
    {
      signConflict: () => (sampleConflicts(preset, contributions()) * each) / (statistics.elements || 1),
      outputChange: () => ratio(Math.sqrt(merged().square * each), Math.sqrt(products[0]![0]!)),
      counts() {
        let shared: number[][] | undefined;
        // a chart shows one of them
        return {
          get atBase() {
            return merged().atBase * each;
          },
          get shared() {
            shared ??= sampleShared(contributions()).map((row) => row.map((n) => n * each));
            return shared;
          },
          get lost() {
            return preset.consensus === 'none' ? [] : merged().lost.map((n) => n * each);
          },
        };
      },
    },
  );
}

/** W₀ + (Σcᵢ − 1)·W₀ + Σ cᵢτᵢ: the change is known exactly. @param c of W₀ and of every τ */
function predictedSum({ prepared, dtype }: PredictedTensor, c: readonly number[]): PredictedReport {
  const { statistics } = prepared;
  const change = changeOf(statistics, c);
  return new LazyReport({ ...outline(prepared), predicted: 'merge', exactChange: true }, dtype, {
    signConflict: () => 0,
    outputChange: () => change,
    counts: () => ({
      atBase: sumAtBase(statistics.sample, dtype, c) * statistics.elements,
      shared: [],
      lost: [],
    }),
  });
}

/** The share of the sample that Σ cᵢvᵢ leaves at the base. */
function sumAtBase({ base, changes }: TensorSample, dtype: string, c: readonly number[]): number {
  let staying = 0;
  for (let e = 0; e < base.length; e++) {
    let delta = c[0]! * base[e]!;
    for (let i = 0; i < changes.length; i++) delta += c[i + 1]! * changes[i]![e]!;
    if (staysAtBase(base[e]!, delta, dtype)) staying++;
  }
  return base.length > 0 ? staying / base.length : 0;
}

/**
 * Result of a method on scalar products, as coefficients of W₀ and of every τ on top of W₀; undefined where it looks at rows or
 * columns, or has no result.
 */
function productsChange(
  { prepared, settings: { parameters, models } }: PredictedTensor,
  compute: ProductsCompute,
): number[] | undefined {
  const { products, shape } = prepared.statistics;
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

function predictedChanges({ prepared, dtype }: PredictedTensor): PredictedReport {
  return new LazyReport({ ...outline(prepared), predicted: 'changes', exactChange: false }, dtype, {
    signConflict: () => 0,
    outputChange: () => 0,
    counts: () => undefined,
  });
}

/** All of every task vector. */
function outline({ statistics, curves, cosine }: PreparedStatistics) {
  const contributors = statistics.contributors.map(({ id }, i): ContributorReport => {
    const { norm } = curves[i]!;
    return { id, kept: statistics.elements, threshold: 0, norm, keptNorm: norm };
  });
  return { statistics, cosine, contributors, errors: contributors.map(() => EXACT), isRandom: false };
}

/** ‖Σ cᵢvᵢ‖ / ‖W₀‖ by the products of the vectors. */
function changeOf({ products }: DeltaStatistics, c: readonly number[]): number {
  let square = 0;
  for (const [i, row] of products.entries()) {
    for (const [j, product] of row.entries()) square += c[i]! * c[j]! * product;
  }
  return ratio(Math.sqrt(Math.max(0, square)), Math.sqrt(products[0]![0]!));
}
