/** `lambda: auto`: the same plan with a λ that was found. */

import type { Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { AUTO } from './parameters';
import type { Plan } from './plan';

/** Whether λ is to be searched for. */
export function wantsLambda({ parameters }: Recipe): boolean {
  return parameters.lambda === AUTO;
}

/** The plan with λ in place of `auto`: in every tensor, in the recipe, and in the small files that hold it. */
export function withLambda(plan: Plan, lambda: number): Plan {
  const recipe = { ...plan.recipe, parameters: { ...plan.recipe.parameters, lambda } };
  const [before, after] = [formatRecipe(plan.recipe), formatRecipe(recipe)];
  return {
    ...plan,
    recipe,
    tensors: plan.tensors.map((t) => ({ ...t, parameters: { ...t.parameters, lambda } })),
    extras: plan.extras.map((extra) => {
      const { content } = extra;
      if (!('text' in content) || !content.text.includes(before)) return extra;
      return { ...extra, content: { text: content.text.replace(before, () => after) } };
    }),
  };
}
