/** The runs that the Layers tab can show side by side: the recipe as it is, predicted ones, and finished merges. */
import { useMemo } from 'react';
import type { Recipe } from '../../formats/recipe';
import { methodById } from '../../merge/methods/index';
import { methodParameters } from '../../merge/prediction/recipe-settings';
import type { TensorReport } from '../../reports/job';
import type { PlanTensorFacts } from '../../reports/plan';
import type { RecipeTraits } from '../charts/default-view';
import type { Metric } from '../charts/metrics';
import { deltaKey } from '../state/delta-statistics';
import type { StudioFacts } from '../state/facts';
import { keptRunId } from '../state/past-runs';
import { type PredictedReports, predictedReports } from '../state/predicted';
import { buildRecipe } from '../state/recipe-build';
import { isRecipeOf } from '../state/run-current';
import type { Contributor, KeptRun, PredictedRun } from '../state/run-facts';
import { methodOf } from '../state/studio';
import { useFacts } from '../studio-context';
import { NOW, recipeOfRun } from './predicted-runs';
import { runNames } from './run-names';

export interface LayersRun {
  id: string;
  name: string;
  /** Its place among the shown runs, by which it is coloured; −1 while it is hidden. */
  place: number;
  /** `exact`: merged. `running`: being merged. `predicted`: not merged. `planned`: nothing is known yet. */
  state: 'exact' | 'running' | 'predicted' | 'planned';
  contributors: readonly Contributor[];
  tensors: readonly PlanTensorFacts[];
  reports: ReadonlyMap<string, TensorReport>;
  /** Predictions for what its reports do not say. */
  predicted: PredictedReports;
  traits: RecipeTraits;
  recipe: Recipe;
  kept: KeptRun | null;
  settings: PredictedRun | null;
}

/** Every run there is, the present one first; finished merges of other models last. */
export function useRuns(): LayersRun[] {
  const now = useNow();
  const planned = useFacts((s) => s.predictedRuns);
  const past = useFacts((s) => s.pastRuns);
  const shown = useFacts((s) => s.view.runs);
  const recipe = useFacts((s) => s.recipe);
  const models = useFacts((s) => s.models);
  const profile = useFacts((s) => s.profile);
  const plan = useFacts((s) => s.plan);
  const mergedId = useFacts((s) => (s.run?.report ? keptRunId(s.run.startedAt, s.run.report) : null));
  const predicted = useMemo(
    () =>
      planned
        .filter((run) => run.of === deltaKey({ recipe, models }))
        .map((run): LayersRun => predictedRun(run, { recipe, models, profile, plan })),
    [planned, recipe, models, profile, plan],
  );
  const finished = useMemo(() => past.map(finishedRun), [past]);
  return useMemo(() => {
    const all = [
      now,
      ...predicted,
      // the merge of the recipe as it is stands there already
      ...finished.filter((run) => now.state !== 'exact' || run.id !== mergedId),
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
    return all.map((run, i) => ({ ...run, name: names[i]!, place: visible.indexOf(run.id) }));
  }, [now, predicted, finished, shown, mergedId]);
}

/** The runs that are shown, in the order of their places. */
export function shownRuns(runs: readonly LayersRun[]): LayersRun[] {
  return runs.filter((run) => run.place >= 0).sort((a, b) => a.place - b.place);
}

/** The run of the recipe as it is: being merged, merged, or predicted. */
export function useNow(): LayersRun {
  const run = useFacts((s) => s.run);
  const plan = useFacts((s) => s.plan);
  const profile = useFacts((s) => s.profile);
  const recipe = useFacts((s) => s.recipe);
  const models = useFacts((s) => s.models);
  const merged = run && run.tensors.length + (run.status === 'running' ? 1 : 0) > 0 ? run : null;
  const isCurrent = useMemo(
    () => merged !== null && (merged.status === 'running' || isRecipeOf(merged.recipe, recipe, models)),
    [merged, recipe, models],
  );
  const finished = merged?.tensors;
  const reports = useMemo(() => new Map((finished ?? []).map((t) => [t.name, t])), [finished]);
  const predicted = predictedReports({ profile, plan, recipe, models });
  return useMemo((): LayersRun => {
    const method = methodOf(recipe);
    const built = isCurrent && merged ? merged.recipe : buildRecipe(recipe, models, method);
    const base = {
      id: NOW,
      name: '',
      place: 0,
      predicted,
      recipe: built,
      kept: null,
      settings: null,
      traits: traitsOf(built, predicted.size > 0),
    };
    if (merged && isCurrent) {
      return {
        ...base,
        state: merged.status === 'running' ? 'running' : 'exact',
        contributors: merged.contributors,
        tensors: merged.planned,
        reports,
      };
    }
    return {
      ...base,
      state: predicted.size > 0 ? 'predicted' : 'planned',
      contributors: plan.contributors,
      tensors: plan.facts?.tensors ?? NONE,
      reports: predicted,
    };
  }, [merged, isCurrent, reports, predicted, recipe, models, plan]);
}

const NONE: readonly PlanTensorFacts[] = [];
const NOTHING: PredictedReports = new Map();

type Facts = Pick<StudioFacts, 'recipe' | 'models' | 'profile' | 'plan'>;

function predictedRun(settings: PredictedRun, facts: Facts): LayersRun {
  const recipe = recipeOfRun(settings, facts.recipe);
  const reports = predictedReports({ ...facts, recipe }, settings.id);
  const built = buildRecipe(recipe, facts.models, methodOf(recipe));
  return {
    id: settings.id,
    name: '',
    place: -1,
    state: reports.size > 0 ? 'predicted' : 'planned',
    contributors: facts.plan.contributors,
    tensors: facts.plan.facts?.tensors ?? NONE,
    reports,
    predicted: reports,
    recipe: built,
    traits: traitsOf(built, reports.size > 0),
    kept: null,
    settings,
  };
}

function finishedRun(kept: KeptRun): LayersRun {
  return {
    id: kept.id,
    name: '',
    place: -1,
    state: 'exact',
    contributors: kept.contributors,
    tensors: kept.planned,
    reports: new Map(kept.report.tensors.map((t) => [t.name, t])),
    predicted: NOTHING,
    recipe: kept.recipe,
    traits: traitsOf(kept.recipe, false),
    kept,
    settings: null,
  };
}

function traitsOf(recipe: Recipe, isMeasured: boolean): RecipeTraits {
  const method = methodById.get(recipe.mergeMethod) ?? methodById.get('passthrough')!;
  return {
    method,
    parameters: methodParameters(recipe, method),
    contributors: recipe.models?.length ?? 0,
    hasBase: recipe.baseModel !== undefined || isMeasured,
  };
}

/**
 * The reports from which a metric of a run is drawn. A merge that names no base reports no changes to it: where the models
 * were measured, what they show stands in, marked as predicted.
 */
export function reportsFor(run: LayersRun, metric: Metric): ReadonlyMap<string, TensorReport> {
  if (run.state !== 'exact' || run.predicted.size === 0) return run.reports;
  const lacks = (report: TensorReport) =>
    metric.id === 'cosine' || metric.id === 'size'
      ? report.baseNorm === 0
      : metric.id === 'mergedSparsity' || metric.id === 'outputChange'
        ? (report.counts?.atBase ?? null) === null
        : false;
  let copy: Map<string, TensorReport> | undefined;
  for (const [name, report] of run.reports) {
    const predicted = run.predicted.get(name);
    if (report.copied || !predicted || !lacks(report)) continue;
    copy ??= new Map(run.reports);
    copy.set(name, predicted);
  }
  return copy ?? run.reports;
}
