import type { Recipe, RecipeParameters } from '../../formats/recipe';
import { nameSome, type Problems } from '../../inputs/problems';
import type { MergeMethod } from '../method';

/** Warns of parameters that the method does not have, or that stand where they have no effect. */
export function checkParameterNames(recipe: Recipe, method: MergeMethod, problems: Problems): void {
  const has = (specs: MergeMethod['parameters'], name: string) => Object.hasOwn(specs, name);
  const report = (name: string, where: string, known: boolean) => {
    const takes = [...Object.keys(method.modelParameters), ...Object.keys(method.parameters)];
    problems.add({
      severity: 'warning',
      code: 'ParameterIgnored',
      message: known
        ? `${name} is a parameter of the whole merge; under ${where} it has no effect.`
        : `${method.id} has no parameter ${name}, which stands under ${where}; it has no effect.`,
      remedy: known
        ? `Move ${name} to the parameters of the recipe.`
        : `Its parameters are ${nameSome(takes, 12)}.`,
    });
  };
  const check = (parameters: RecipeParameters, where: string, ofModel: boolean) => {
    for (const name of Object.keys(parameters)) {
      if (has(method.modelParameters, name)) continue;
      const global = has(method.parameters, name);
      if (!global || ofModel) report(name, where, global);
    }
  };
  check(recipe.parameters, 'parameters', false);
  for (const { model, parameters } of recipe.models ?? []) check(parameters, model, true);
  for (const [i, slice] of (recipe.slices ?? []).entries()) {
    check(slice.parameters, `slice ${i + 1}`, false);
    for (const { model, parameters } of slice.sources) check(parameters, `${model} in slice ${i + 1}`, true);
  }
}
