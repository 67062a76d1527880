import { useMemo } from 'react';
import type { DeltaStatistics } from '../../reports/profile';
import { deltaKey } from '../state/delta-statistics';
import { predictedMasks } from '../state/predicted';
import { useFacts } from '../studio-context';

/** What the statistics pass found in a tensor, while it is of the recipe's models. */
export function useProfileOf(name: string): DeltaStatistics | undefined {
  return useFacts((s) =>
    s.profile.key === deltaKey(s) ? s.profile.tensors.find((t) => t.name === name) : undefined,
  );
}

/** The sampled mask of every contributor for the recipe as it is, by its id. */
export function usePredictedMasks(profile: DeltaStatistics | undefined): ReadonlyMap<string, Uint8Array> {
  const plan = useFacts((s) => s.plan);
  const recipe = useFacts((s) => s.recipe);
  const models = useFacts((s) => s.models);
  return useMemo(
    () => (profile ? predictedMasks(profile, { plan, recipe, models }) : new Map()),
    [profile, plan, recipe, models],
  );
}
