import { useMemo } from 'react';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import { deltaKey } from '../state/delta-statistics';
import { predictedMasks } from '../state/predicted-reports';
import { useStudio, useStudioState } from '../studio-context';

/** What the statistics pass found in a tensor, while it is of the recipe's models. */
export function useStatisticsOf(name: string): DeltaStatistics | undefined {
  return useStudioState((s) =>
    s.deltaStatistics.key === deltaKey(s)
      ? s.deltaStatistics.tensors.find((t) => t.name === name)
      : undefined,
  );
}

/** The sampled mask of every contributor for the recipe as it is, by its id. */
export function usePredictedMasks(statistics: DeltaStatistics | undefined): ReadonlyMap<string, Uint8Array> {
  const studio = useStudio();
  const plan = useStudioState((s) => s.plan);
  const recipe = useStudioState((s) => s.recipe);
  const models = useStudioState((s) => s.models);
  return useMemo(
    () => (statistics ? predictedMasks(studio, statistics, { plan, recipe, models }) : new Map()),
    [studio, statistics, plan, recipe, models],
  );
}
