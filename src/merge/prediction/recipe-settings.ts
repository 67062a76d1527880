import type { Recipe } from '../../formats/recipe';
import { tensorPlace } from '../../models/tensor-role';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { MergeMethod } from '../method';
import { layerPosition, outsidePosition, resolveParameters } from '../plan/parameters';
import type { ResolvedParameters } from '../plan/plan';

/** Values for one tensor, as resolved from the recipe; models in the order of the statistics. */
export interface PredictionSettings {
  parameters: ResolvedParameters;
  models: readonly ResolvedParameters[];
}

/** Parameters of the method as a whole, for the recipe's first layer. */
export function methodParameters(recipe: Recipe, method: MergeMethod): ResolvedParameters {
  return resolveParameters(method.parameters, [recipe.parameters], '', 0).values;
}

/**
 * Settings of a tensor in a recipe of whole models, as the plan would resolve them.
 * @param layers blocks of the output
 * @returns undefined where a value is missing or out of range: then there is nothing to predict
 */
export function recipeSettings(
  recipe: Recipe,
  method: MergeMethod,
  layers: number,
): (statistics: DeltaStatistics) => PredictionSettings | undefined {
  const ends = recipe.amalgam.gradientEnds ?? 'mergekit';
  const byId = new Map((recipe.models ?? []).map((m) => [m.model, m.parameters]));
  const levels = [recipe.parameters, ...byId.values()];
  const uniform = levels.every((level) => Object.values(level).every((value) => !Array.isArray(value)));
  // neither gradients nor filters: one answer for all tensors of the same models
  let same: { of: DeltaStatistics['contributors']; settings: PredictionSettings | undefined } | undefined;
  return (statistics) => {
    const { contributors } = statistics;
    if (!uniform) return settingsOf(statistics);
    if (
      !same?.of.every(({ id }, i) => id === contributors[i]?.id) ||
      same.of.length !== contributors.length
    ) {
      same = { of: contributors, settings: settingsOf(statistics) };
    }
    return same.settings;
  };

  function settingsOf({ name, layer, contributors }: DeltaStatistics): PredictionSettings | undefined {
    const place = layer === null ? tensorPlace(name) : 'layer';
    const t =
      layer !== null
        ? layerPosition(layer, layers)
        : outsidePosition(place === 'layer' ? 'before' : place, ends);
    const global = resolveParameters(method.parameters, [recipe.parameters], name, t);
    const models = contributors.map(({ id }) =>
      resolveParameters(method.modelParameters, [byId.get(id) ?? {}, recipe.parameters], name, t),
    );
    return [global, ...models].some(({ faults }) => faults.length > 0)
      ? undefined
      : { parameters: global.values, models: models.map(({ values }) => values) };
  }
}
