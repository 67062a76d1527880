import type { TensorProfile } from '../engine/protocol-profile';
import type { Recipe } from '../formats/recipe';
import { tensorPlace } from '../models/tensor-role';
import type { ForetoldSettings } from './foretell';
import type { MergeMethod } from './method';
import { layerPosition, outsidePosition, resolveParameters } from './parameters';

/**
 * What a recipe of whole models says about a tensor, as the plan would resolve it.
 * @param layers blocks of the output
 * @returns undefined where a value is missing or out of range: then there is nothing to foretell
 */
export function recipeSettings(
  recipe: Recipe,
  method: MergeMethod,
  layers: number,
): (profile: TensorProfile) => ForetoldSettings | undefined {
  const ends = recipe.amalgam.gradientEnds ?? 'mergekit';
  const byId = new Map((recipe.models ?? []).map((m) => [m.model, m.parameters]));
  return ({ name, layer, contributors }) => {
    const place = tensorPlace(name);
    const t =
      layer !== null
        ? layerPosition(layer, layers)
        : outsidePosition(place === 'layer' ? 'before' : place, ends);
    const global = resolveParameters(method.parameters, [recipe.parameters], name, t);
    const models = contributors.map(({ id }) =>
      resolveParameters(method.modelParameters, [byId.get(id) ?? {}, recipe.parameters], name, t),
    );
    if ([global, ...models].some(({ faults }) => faults.length > 0)) return undefined;
    return { parameters: global.values, models: models.map(({ values }) => values) };
  };
}
