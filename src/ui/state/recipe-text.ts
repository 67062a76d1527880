/** The recipe as text and as form at once: what a text that was typed makes of the state. */

import type { Recipe } from '../../formats/recipe';
import { methodById } from '../../merge/methods/index';
import type { ModelInfo } from '../../reports/models';
import type { PlanProblem } from '../../reports/plan';
import { recipeState } from './opened-recipe';
import { addContributor, type RecipeState } from './recipe-state';

/**
 * The state of a recipe that was written in the place of `before`. Models that stay keep their colour, and those that
 * are switched off, which no text names, stay switched off. So does a base that the method does without. Pure.
 */
export function recipeFromText(
  before: RecipeState,
  recipe: Recipe,
  models: readonly ModelInfo[],
): RecipeState {
  const after = recipeState(recipe, models);
  const base = after.base ?? (methodById.get(recipe.mergeMethod)?.base === 'none' ? before.base : null);
  const named = new Set([base, ...after.contributors.map((c) => c.ref)]);
  const off = before.contributors.filter((c) => !c.enabled && !named.has(c.ref));
  const stay = before.contributors.filter((c) => named.has(c.ref));
  const coloured = after.contributors.reduce((filled, { ref }) => addContributor(filled, ref), {
    ...before,
    contributors: [...stay, ...off],
  });
  const colours = new Map(coloured.contributors.map((c) => [c.ref, c.colour]));
  const contributors = after.contributors.map((c) => ({ ...c, colour: colours.get(c.ref) ?? c.colour }));
  const isContributor = contributors.some((c) => c.ref === base);
  return { ...after, base: isContributor ? after.base : base, contributors: [...contributors, ...off] };
}

/** A warning of the plan at the line of the text, counted from 1, whose key it is about. */
interface LineWarning {
  line: number;
  message: string;
  remedy: string;
}

/** The plan's warnings about keys that the text has, at the lines of these keys. Pure. */
export function warningsAtLines(text: string, problems: readonly PlanProblem[]): LineWarning[] {
  const keys = text.split('\n').map((line) => /^[\s-]*["']?([^\s"':#]+)["']?\s*:/.exec(line)?.[1]);
  return problems
    .filter(({ severity }) => severity === 'warning')
    .flatMap(({ keys: about = [], message, remedy }) =>
      keys.flatMap((key, i) =>
        key !== undefined && about.includes(key) ? [{ line: i + 1, message, remedy }] : [],
      ),
    )
    .sort((a, b) => a.line - b.line);
}
