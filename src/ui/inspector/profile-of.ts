import { useMemo } from 'react';
import type { TensorProfile } from '../../reports/profile';
import { foretoldMasks } from '../state/foretold';
import { profileKey } from '../state/profile';
import { useFacts } from '../studio-context';

/** What the statistics pass found in a tensor, while it is of the recipe's models. */
export function useProfileOf(name: string): TensorProfile | undefined {
  return useFacts((s) =>
    s.profile.key === profileKey(s) ? s.profile.tensors.find((t) => t.name === name) : undefined,
  );
}

/** The sampled mask of every contributor for the recipe as it is, by its id. */
export function useForetoldMasks(profile: TensorProfile | undefined): ReadonlyMap<string, Uint8Array> {
  const plan = useFacts((s) => s.plan);
  const recipe = useFacts((s) => s.recipe);
  const models = useFacts((s) => s.models);
  return useMemo(
    () => (profile ? foretoldMasks(profile, { plan, recipe, models }) : new Map()),
    [profile, plan, recipe, models],
  );
}
