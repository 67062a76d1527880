/** `lambda: auto`: the same plan with a λ that was found. */

import type { ParameterSetting, Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { AUTO, evaluateSetting } from './parameters';
import type { Plan } from './plan';

/** Whether λ is to be searched for. */
export function wantsLambda({ parameters }: Recipe): boolean {
  return parameters.lambda === AUTO;
}

/** Whether a λ can be put into a plan: a number, or one for each kind of tensor. */
export function isPlainLambda(lambda: ParameterSetting | undefined): lambda is ParameterSetting {
  const isNumber = (value: unknown) => typeof value === 'number';
  if (!Array.isArray(lambda)) return isNumber(lambda);
  return lambda.every((entry) => typeof entry !== 'number' && isNumber(entry.value));
}

/** The plan with λ in place of `auto`: in every tensor, in the recipe, and in the small files that hold it. */
export function withLambda(plan: Plan, lambda: ParameterSetting): Plan {
  const recipe = { ...plan.recipe, parameters: { ...plan.recipe.parameters, lambda } };
  const [before, after] = [formatRecipe(plan.recipe), formatRecipe(recipe)];
  return {
    ...plan,
    recipe,
    tensors: plan.tensors.map((t) => {
      const own = evaluateSetting(lambda, t.name, 0);
      return own === undefined ? t : { ...t, parameters: { ...t.parameters, lambda: own } };
    }),
    extras: plan.extras.map((extra) => {
      const { content } = extra;
      if (!('text' in content) || !content.text.includes(before)) return extra;
      return { ...extra, content: { text: content.text.replace(before, () => after) } };
    }),
  };
}
