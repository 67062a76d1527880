/** The recipe as text and as form at once: what a text that was typed makes of the facts. */

import type { Recipe } from '../../formats/recipe';
import { methodById } from '../../merge/methods/index';
import type { ModelFacts } from '../../reports/models';
import { addContributor, type RecipeFacts } from './recipe-facts';
import { recipeFacts } from './recipe-open';

/**
 * The facts of a recipe that was written in the place of `before`. Models that stay keep their colour, and those that
 * are switched off, which no text names, stay switched off. So does a base that the method does without. Pure.
 */
export function retoldFacts(before: RecipeFacts, recipe: Recipe, models: readonly ModelFacts[]): RecipeFacts {
  const after = recipeFacts(recipe, models);
  const base = after.base ?? (methodById.get(recipe.mergeMethod)?.base === 'none' ? before.base : null);
  const named = new Set([base, ...after.contributors.map((c) => c.ref)]);
  const off = before.contributors.filter((c) => !c.enabled && !named.has(c.ref));
  const stay = before.contributors.filter((c) => named.has(c.ref));
  const coloured = after.contributors.reduce((facts, { ref }) => addContributor(facts, ref), {
    ...before,
    contributors: [...stay, ...off],
  });
  const colours = new Map(coloured.contributors.map((c) => [c.ref, c.colour]));
  const contributors = after.contributors.map((c) => ({ ...c, colour: colours.get(c.ref) ?? c.colour }));
  const isContributor = contributors.some((c) => c.ref === base);
  return { ...after, base: isContributor ? after.base : base, contributors: [...contributors, ...off] };
}
