import { useMemo } from 'react';
import type { TensorReport } from '../../reports/job';
import type { PlanTensorFacts } from '../../reports/plan';
import { predictedReports } from '../state/predicted';
import { isRecipeOf } from '../state/run-current';
import type { Contributor } from '../state/run-facts';
import { useFacts } from '../studio-context';

/**
 * What the charts show: the running merge; else the last one while the recipe is still its own; else what the statistics
 * pass predicts for the recipe as it is; else, with nothing measured, the last merge or the bare plan.
 */
export interface LayersSource {
  state: 'planned' | 'predicted' | 'running' | 'current' | 'outdated';
  contributors: readonly Contributor[];
  tensors: readonly PlanTensorFacts[];
  reports: ReadonlyMap<string, TensorReport>;
  measured: number;
  expected: number;
}

export function useLayersSource(): LayersSource {
  const run = useFacts((s) => s.run);
  const plan = useFacts((s) => s.plan);
  const { contributors } = plan;
  const tensors = plan.facts?.tensors ?? NONE;
  const profile = useFacts((s) => s.profile);
  const recipe = useFacts((s) => s.recipe);
  const models = useFacts((s) => s.models);
  const shown = run && run.tensors.length + (run.status === 'running' ? 1 : 0) > 0 ? run : null;
  const merged = shown?.recipe;
  const outdated = useMemo(
    () => merged !== undefined && !isRecipeOf(merged, recipe, models),
    [merged, recipe, models],
  );
  const finished = shown?.tensors;
  const reports = useMemo(() => new Map((finished ?? []).map((t) => [t.name, t])), [finished]);
  const live = shown?.status === 'running' || (shown !== null && !outdated);
  const predicted = live ? NO_REPORTS : predictedReports({ profile, plan, recipe, models });
  return useMemo((): LayersSource => {
    if (!shown || (!live && predicted.size > 0)) {
      return {
        state: predicted.size > 0 ? 'predicted' : 'planned',
        contributors,
        tensors,
        reports: predicted,
        measured: profile.tensors.length,
        expected: profile.expected,
      };
    }
    return {
      state: shown.status === 'running' ? 'running' : outdated ? 'outdated' : 'current',
      contributors: shown.contributors,
      tensors: shown.planned,
      reports,
      measured: shown.tensors.length,
      expected: shown.planned.length,
    };
  }, [shown, live, predicted, contributors, tensors, profile, outdated, reports]);
}

const NONE: readonly PlanTensorFacts[] = [];
const NO_REPORTS: ReadonlyMap<string, TensorReport> = new Map();
