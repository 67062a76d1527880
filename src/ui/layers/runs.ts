/** The runs that the Layers tab can show side by side: the current recipe, predicted ones, and finished merges. */
import { useMemo, useRef } from 'react';
import { formatSetting } from '../../formats/quantity';
import type { ParameterScalar, Recipe } from '../../formats/recipe';
import type { MergeMethod, ParameterSpec } from '../../merge/method';
import { methodById } from '../../merge/methods/index';
import type { PredictedReport } from '../../merge/prediction/predicted-report';
import { Predictor } from '../../merge/prediction/predictor';
import { methodParameters } from '../../merge/prediction/recipe-settings';
import { sameItems } from '../../merge/prediction/same-items';
import type { TensorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import type { RecipeTraits } from '../charts/measured';
import type { Metric } from '../charts/metrics';
import { methodName } from '../format/method-name';
import { buildRecipe, shortName } from '../state/built-recipe';
import { deltaKey } from '../state/delta-statistics';
import { withSettingsOf } from '../state/predicted-runs';
import { recipeKey } from '../state/recipe-identity';
import { effectiveSpecs, type Settings } from '../state/recipe-state';
import {
  type Contributor,
  currentRun,
  type FinishedRun,
  finishedRuns,
  isFinished,
  NOW,
  type PredictedRun,
  predictedRuns,
  type RunState,
} from '../state/runs';
import { methodOf, type StudioState } from '../state/studio';
import { useParts, useStudioState } from '../studio-context';

export interface LayersRun {
  id: string;
  name: string;
  /** Its place among the shown runs, by which it is colored; −1 while it is hidden. */
  place: number;
  /** `exact`: merged. `running`: being merged. `predicted`: not merged. `planned`: nothing is known yet. */
  state: 'exact' | 'running' | 'predicted' | 'planned';
  contributors: readonly Contributor[];
  tensors: readonly PlanTensor[];
  reports: ReadonlyMap<string, TensorReport>;
  /** Predictions for values missing in its reports. */
  predicted: PredictedReports;
  traits: RecipeTraits;
  recipe: Recipe;
  kept: FinishedRun | null;
  settings: PredictedRun | null;
}

/** Every run there is, the present one first; finished merges of other models last. */
export function useRuns(): LayersRun[] {
  const now = useNow();
  const planned = useStudioState(predictedRuns);
  const past = useStudioState(finishedRuns);
  const shown = useStudioState((s) => s.view.runs);
  const { recipe, models, deltaStatistics, plan } = useParts('recipe', 'models', 'deltaStatistics', 'plan');
  const merged = useStudioState((s) => (currentRun(s)?.of === undefined ? null : currentRun(s)));
  const predicted = useMemo(
    () =>
      planned
        .filter((run) => run.of === deltaKey({ recipe, models }))
        .map((run): LayersRun => {
          const own = predictedRun(run, { recipe, models, deltaStatistics, plan });
          return merged?.of === run.id ? { ...own, ...mergeOf(merged) } : own;
        }),
    [planned, recipe, models, deltaStatistics, plan, merged],
  );
  const finished = useMemo(() => past.map(finishedRun), [past]);
  const before = useRef<readonly { of: LayersRun; run: LayersRun }[]>([]);
  return useMemo(() => {
    const all = [
      now,
      ...predicted,
      // the merge of the current recipe is in the list already
      ...finished.filter((run) => run.id !== now.kept?.id),
    ];
    const names = runNames(
      all.map((run) => ({
        recipe: run.recipe,
        method: run.traits.method,
        given: run.kept?.name ?? run.settings?.name ?? null,
      })),
    );
    const there = shown.filter((id) => all.some((run) => run.id === id));
    const visible = there.length > 0 ? there : [NOW];
    before.current = all.map((of, i) => {
      const [name, place] = [names[i]!, visible.indexOf(of.id)];
      // the very object for a run without news: what shows it is not drawn again
      const old = before.current.find((entry) => entry.of === of);
      const isSame = old?.run.name === name && old.run.place === place;
      return isSame ? old : { of, run: { ...of, name, place } };
    });
    return before.current.map(({ run }) => run);
  }, [now, predicted, finished, shown]);
}

/** The runs that are shown, in the order of their places. */
export function shownRuns(runs: readonly LayersRun[]): LayersRun[] {
  return runs.filter((run) => run.place >= 0).sort((a, b) => a.place - b.place);
}

/** Are its tensors factors of a LoRA? Metrics of a weight change are meaningless for one factor alone. */
export function writesFactors({ recipe }: LayersRun): boolean {
  return recipe.amalgam.output === 'adapter' && recipe.amalgam.combination !== 'merged_svd';
}

/** The run of the current recipe: being merged, merged now or on an earlier visit, or predicted. */
export function useNow(): LayersRun {
  const run = useStudioState(currentRun);
  const past = useStudioState(finishedRuns);
  const { plan, deltaStatistics, recipe, models } = useParts('plan', 'deltaStatistics', 'recipe', 'models');
  const built = useMemo(() => buildRecipe(recipe, models, methodOf(recipe)), [recipe, models]);
  const begun = run && run.tensors.length + (run.status === 'running' ? 1 : 0) > 0 ? run : null;
  const isLive =
    begun !== null &&
    ((begun.status === 'running' && begun.of === undefined) || recipeKey(begun.recipe) === recipeKey(built));
  const merged = isLive ? begun : null;
  const kept = useMemo(() => {
    if (merged) return isFinished(merged) ? merged : null;
    return past.find((own) => recipeKey(own.report.recipe) === recipeKey(built)) ?? null;
  }, [past, merged, built]);
  const predicted = predictedReports({ deltaStatistics, plan, recipe, models }, built);
  return useMemo((): LayersRun => {
    const own = merged?.recipe ?? built;
    const base = {
      ...BLANK,
      ...{ id: NOW, predicted, recipe: own, kept },
      traits: traitsOf(own, predicted.size > 0),
    };
    if (merged) return { ...base, ...mergeOf(merged) };
    if (kept) return { ...finishedRun(kept), ...base };
    return {
      ...base,
      state: predicted.size > 0 ? 'predicted' : 'planned',
      contributors: plan.contributors,
      tensors: plan.report?.tensors ?? NONE,
      reports: predicted,
    };
  }, [merged, kept, predicted, built, plan]);
}

/** State and reports of the merge at work, or of the last one. */
function mergeOf(merged: RunState): Pick<LayersRun, 'state' | 'contributors' | 'tensors' | 'reports'> {
  return {
    state: merged.status === 'running' ? 'running' : 'exact',
    contributors: merged.contributors,
    tensors: merged.planned,
    reports: reportsByName(merged.tensors),
  };
}

const byName = new WeakMap<readonly TensorReport[], ReadonlyMap<string, TensorReport>>();

function reportsByName(reports: readonly TensorReport[]): ReadonlyMap<string, TensorReport> {
  const known = byName.get(reports) ?? new Map(reports.map((t) => [t.name, t]));
  byName.set(reports, known);
  return known;
}

const NONE: readonly PlanTensor[] = [];
const NOTHING: PredictedReports = new Map();
/** A run before its name and its place among the others are known. */
const BLANK = { name: '', place: -1, predicted: NOTHING, kept: null, settings: null };

type LayersState = Pick<StudioState, 'recipe' | 'models' | 'deltaStatistics' | 'plan'>;

type PredictedReports = ReadonlyMap<string, PredictedReport>;

const predictor = new Predictor();

/**
 * The predicted report of every measured tensor that the plan would compute, by name; empty while the statistics are of
 * other models.
 * @param built the recipe of the state, as it would be merged
 */
function predictedReports(
  { deltaStatistics, plan, recipe, models }: LayersState,
  built: Recipe,
): PredictedReports {
  const { tensors: measured, key } = deltaStatistics;
  if (!plan.report || measured.length === 0 || key !== deltaKey({ recipe, models })) return NOTHING;
  if (built.slices || built.stages) return NOTHING; // other layers than those that were measured
  const { tensors: planned, layers = 0 } = plan.report;
  return predictor.predict({
    ...{ measured, planned, layers },
    ...{ recipe: built, method: methodOf(recipe) },
  });
}

const made = new WeakMap<PredictedRun, { of: readonly unknown[]; run: LayersRun }>();

/** The very object while nothing of it changes: a step of a slider is about another run. */
function predictedRun(settings: PredictedRun, state: LayersState): LayersRun {
  const recipe = withSettingsOf(state.recipe, settings.recipe, state.models);
  const built = buildRecipe(recipe, state.models, methodOf(recipe));
  const reports = predictedReports({ ...state, recipe }, built);
  const { contributors } = state.plan;
  const tensors = state.plan.report?.tensors ?? NONE;
  const of = [reports, contributors, tensors, recipeKey(built)];
  const known = made.get(settings);
  if (known && sameItems(known.of, of)) return known.run;
  const run: LayersRun = {
    ...BLANK,
    ...{ id: settings.id, contributors, tensors, reports, predicted: reports, recipe: built, settings },
    state: reports.size > 0 ? 'predicted' : 'planned',
    traits: traitsOf(built, reports.size > 0),
  };
  made.set(settings, { of, run });
  return run;
}

/** A finished merge as one of the runs. */
export function finishedRun(kept: FinishedRun): LayersRun {
  const { id, report, contributors, planned: tensors } = kept;
  return {
    ...BLANK,
    ...{ id, contributors, tensors, kept, state: 'exact', recipe: report.recipe },
    reports: reportsByName(report.tensors),
    traits: traitsOf(report.recipe, false),
  };
}

const traits = new Map<string, RecipeTraits>();

/** The same object for recipes that are alike in them: a slider changes none. */
function traitsOf(recipe: Recipe, isMeasured: boolean): RecipeTraits {
  const method = methodById.get(recipe.mergeMethod) ?? methodById.get('passthrough')!;
  const made: RecipeTraits = {
    method,
    parameters: methodParameters(recipe, method),
    contributors: recipe.models?.length ?? 0,
    hasBase: recipe.baseModel !== undefined || isMeasured,
  };
  const key = JSON.stringify({ ...made, method: method.id });
  const known = traits.get(key) ?? made;
  // settings without a slider are few; λ has one
  if (traits.size > 200) traits.clear();
  traits.set(key, known);
  return known;
}

/**
 * The reports from which a metric of a run is drawn. A merge that names no base reports no changes to it: where the models
 * were measured, what they show stands in, marked as predicted.
 */
export function reportsFor(run: LayersRun, metric: Metric): ReadonlyMap<string, TensorReport> {
  if (run.state !== 'exact' || run.predicted.size === 0 || !metric.lacks) return run.reports;
  let copy: Map<string, TensorReport> | undefined;
  for (const [name, report] of run.reports) {
    const predicted = run.predicted.get(name);
    if (report.copied || !predicted || !metric.lacks(report)) continue;
    copy ??= new Map(run.reports);
    copy.set(name, predicted);
  }
  return copy ?? run.reports;
}

// ---------------------------------------------------------------- names of runs, by their differences

interface Named {
  recipe: Recipe;
  method: MergeMethod;
  /** Given by a user. */
  given: string | null;
}

/** A name for every run: its method, and what it does not share with the others of its method; else its density. */
export function runNames(runs: readonly Named[]): string[] {
  const all = runs.map(settingsOf);
  return runs.map(({ given, method }, i) => {
    if (given !== null) return given;
    const others = all.filter((_, j) => j !== i && runs[j]!.method.id === method.id);
    const isShared = (name: string, { of, text }: Value) =>
      others.every((other) => other.get(name)?.some((own) => own.of === of && own.text === text));
    const apart = [...all[i]!].flatMap(([name, values]) => {
      const own = values.filter((value) => !isShared(name, value));
      return own.length === 0 ? [] : [wordsOf(values, own)];
    });
    const density = all[i]!.get('density') ?? [];
    const parts = apart.length === 0 && density.length > 0 ? [wordsOf(density, density)] : apart;
    return [methodName(method), ...parts].join(' · ');
  });
}

/** Names without the parts with which all of them begin: there is little room over a chart. */
export function shortNames(names: readonly string[]): string[] {
  const parts = names.map((name) => name.split(' · '));
  const [first = []] = parts;
  const shared = first.findIndex((part, i) => parts.some((own) => own[i] !== part || own.length === i + 1));
  return names.length < 2 || shared < 1 ? [...names] : parts.map((own) => own.slice(shared).join(' · '));
}

/** A setting in words. */
interface Value {
  /** Of which contributor; empty: of all together. */
  of: string;
  label: string;
  text: string;
}

/** `weight 1.00` where all contributors have one, else `weight kitchen 0.50`. @param shown those that are named */
function wordsOf(values: readonly Value[], shown: readonly Value[]): string {
  const [{ of, label, text }] = values as [Value];
  if (of === '') return text;
  if (values.every((own) => own.text === text)) return label === 'density' ? text : `${label} ${text}`;
  return `${label} ${shown.map((own) => `${own.of} ${own.text}`).join(' ')}`;
}

const knownSettings = new WeakMap<Recipe, Map<string, Value[]>>();

/** Settings of a recipe by parameter, those of contributors one by one. */
function settingsOf({ recipe, method }: Named): Map<string, Value[]> {
  const before = knownSettings.get(recipe);
  if (before) return before;
  const made = new Map<string, Value[]>();
  const settings = Object.fromEntries(
    Object.entries(method.parameters).map(([name, spec]) => [name, recipe.parameters[name] ?? spec.default]),
  ) as Settings;
  for (const { name, spec } of effectiveSpecs(method.parameters, settings)) {
    const text =
      spec.kind === 'choice'
        ? (spec.choices.find((c) => c.value === settings[name])?.label ?? String(settings[name]))
        : said(spec.label, settings[name], stepOf(spec));
    made.set(name, [{ of: '', label: spec.label, text }]);
  }
  for (const { name, spec } of effectiveSpecs(method.modelParameters, settings)) {
    const values = (recipe.models ?? []).flatMap(({ model, parameters }): Value[] => {
      const value = parameters[name] ?? recipe.parameters[name] ?? spec.default;
      const of = shortName(model.split('+').at(-1)!);
      return value === undefined
        ? []
        : [{ of, label: spec.label.toLowerCase(), text: short(value, stepOf(spec)) }];
    });
    if (values.length > 0) made.set(name, values);
  }
  knownSettings.set(recipe, made);
  return made;
}

const stepOf = (spec: ParameterSpec) => (spec.kind === 'number' ? spec.slider?.step : undefined);

function said(label: string, value: unknown, step: number | undefined): string {
  if (value === true) return label.toLowerCase();
  if (value === false || value === undefined) return `no ${label.toLowerCase()}`;
  return `${label.toLowerCase()} ${short(value, step)}`;
}

function short(value: unknown, step: number | undefined): string {
  if (typeof value === 'number') return formatSetting(value, step);
  return Array.isArray(value) ? 'by layer' : String(value as ParameterScalar);
}
