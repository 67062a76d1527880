/** The two models of a comparison, and why there are none. Pure. */

import { contributorId } from './built-recipe';
import { modelChoices } from './model-choices';
import type { StudioState } from './studio-state';

type PairState = Pick<StudioState, 'models' | 'recipe'> & {
  tools: { models: Pick<StudioState['tools']['models'], 'base' | 'finetuned'> };
};

interface ChosenPair {
  base: string | null;
  finetuned: string | null;
}

/** The pair as chosen, else what the recipe suggests: its base, and the last checkpoint or adapter made from it. */
export function pairOf(state: PairState): ChosenPair {
  const { models, recipe, tools } = state;
  const refs = new Set(modelChoices(state).map((c) => c.ref));
  const known = (ref: string | null) => (ref !== null && refs.has(ref) ? ref : null);
  const base =
    known(tools.models.base) ?? known(recipe.base) ?? models.find((m) => m.kind === 'checkpoint')?.ref;
  const made = recipe.contributors.map((c) => contributorId(recipe.base, c.ref, models));
  const suggested = [...made].reverse().find((ref) => refs.has(ref) && ref !== base);
  return { base: base ?? null, finetuned: known(tools.models.finetuned) ?? suggested ?? null };
}

/** Why these two cannot be compared, or null. */
export function pairProblem({ base, finetuned }: ChosenPair): string | null {
  if (base === null) return 'Open a model first: it becomes the base of the tools.models.';
  return finetuned === null ? 'Choose a model that was fine-tuned from the base.' : null;
}
