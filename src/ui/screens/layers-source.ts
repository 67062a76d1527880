import { useMemo } from 'react';
import type { PlanTensorFacts, TensorReport } from '../../engine/protocol';
import type { Contributor } from '../state/facts';
import { isRecipeOf } from '../state/run-current';
import { useFacts } from '../studio-context';

/** What the charts show: the last or running merge where there is one, else the plan with nothing measured. */
export interface LayersSource {
  state: 'planned' | 'running' | 'current' | 'outdated';
  contributors: readonly Contributor[];
  tensors: readonly PlanTensorFacts[];
  reports: ReadonlyMap<string, TensorReport>;
  measured: number;
  expected: number;
}

export function useLayersSource(): LayersSource {
  const run = useFacts((s) => s.run);
  const plan = useFacts((s) => s.plan);
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
  if (!shown) {
    return {
      state: 'planned',
      contributors: plan.contributors,
      tensors: plan.facts?.tensors ?? NONE,
      reports,
      measured: 0,
      expected: plan.facts?.tensors.length ?? 0,
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
}

const NONE: readonly PlanTensorFacts[] = [];
