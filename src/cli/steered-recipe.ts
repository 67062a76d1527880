/** A recipe with other weights and parameters, as a request or a line of a chat names them. */
import { AmalgamError } from '../errors';
import { copyOf, type ParameterSetting, type Recipe, repositoriesOf } from '../formats/recipe';
import type { RunTarget } from '../reports/evaluate';

export interface Steering {
  /** By a contributor's name, or the last part of it. */
  weights?: Readonly<Record<string, number>> | undefined;
  /** Of the method, by name. */
  parameters?: Readonly<Record<string, ParameterSetting>> | undefined;
}

/** The recipe of a target whose weights can be changed: a recipe, or a model with one LoRA; undefined for another. */
export function recipeOf(target: RunTarget): Recipe | undefined {
  if ('recipe' in target) return target.recipe;
  const [baseModel, adapter] = repositoriesOf(target.model);
  const models = [{ model: target.model, parameters: { weight: 1 } }];
  return adapter ? { ...copyOf(), mergeMethod: 'task_arithmetic', baseModel, models } : undefined;
}

/** @throws AmalgamError `RecipeInvalid` for a name that is no contributor's, or that of several */
export function steeredRecipe(recipe: Recipe, { weights = {}, parameters = {} }: Steering): Recipe {
  const models = recipe.models?.map((model) => ({ ...model, parameters: { ...model.parameters } })) ?? [];
  for (const [name, weight] of Object.entries(weights)) {
    const found = models.filter(({ model }) => model === name || shortName(model) === name);
    if (found.length !== 1) {
      throw new AmalgamError(
        'RecipeInvalid',
        `${found.length === 0 ? 'No contributor' : 'More than one contributor'} is called ${name}.`,
        `Contributors: ${models.map(({ model }) => shortName(model)).join(', ')}.`,
      );
    }
    found[0]!.parameters.weight = weight;
  }
  // what a contributor says of itself would count in its place
  for (const name of Object.keys(parameters)) for (const model of models) delete model.parameters[name];
  return { ...recipe, ...(recipe.models && { models }), parameters: { ...recipe.parameters, ...parameters } };
}

/** `kitchen` of `…/base+…/kitchen@revision`. */
export function shortName(model: string): string {
  const own = model.slice(model.lastIndexOf('+') + 1);
  return own.slice(own.lastIndexOf('/') + 1).replace(/@[^@]*$/, '');
}
