/** Parameters that are each in range but do not go together, in one tensor or from one tensor to the next. */

import { nameSome, type Problems } from '../../inputs/problems';
import type { MergeMethod } from '../method';
import { densityAdvised, keepsNothing } from '../method-conflicts';
import type { ResolvedParameters, TensorPlan } from './plan';

/** What the method itself refuses for one tensor. Values that are missing are problems already. */
export function checkTogether(
  name: string,
  method: MergeMethod,
  models: TensorPlan['models'],
  parameters: ResolvedParameters,
  problems: Problems,
): void {
  if (!method.validate) return;
  const complete = (specs: object, values: ResolvedParameters) =>
    Object.keys(specs).every((key) => values[key] !== undefined);
  if (models.length === 0 || !complete(method.parameters, parameters)) return;
  if (!models.every((m) => complete(method.modelParameters, m.parameters))) return;
  const conflict = method.validate(
    parameters,
    models.map((m) => m.parameters),
  );
  if (!conflict) return;
  problems.error('ParameterConflict', `${method.id}: ${conflict.reason}.`, conflict.remedy, [name]);
}

/**
 * A model of which nothing is kept in any tensor is no part of the merge; one of which everything is kept is not what a
 * method that trims is chosen for.
 */
export function checkDensities(
  method: MergeMethod,
  tensors: readonly TensorPlan[],
  problems: Problems,
): void {
  if (!method.modelParameters.density) return;
  const models = tensors.flatMap((tensor) => tensor.models);
  const whole: string[] = [];
  let advised = 0;
  for (const id of new Set(models.map((model) => model.id))) {
    const own = models.filter((model) => model.id === id);
    const densities = own.map(({ parameters }) => densityAdvised(method, parameters));
    if (densities.every((density) => density !== undefined)) {
      whole.push(id);
      advised = densities[0]!;
    }
    if (!own.every(({ parameters }) => keepsNothing(method, parameters))) continue;
    problems.error(
      'NothingKept',
      `density of ${id} is 0 everywhere: nothing of it is kept.`,
      `Give it a density above 0, or take ${id} out of the recipe.`,
    );
  }
  if (whole.length === 0) return;
  problems.warn(
    'NothingTrimmed',
    `Density 1, mergekit’s default, trims nothing of ${nameSome(whole)}.`,
    `Set a density below 1; ${advised} is recommended for ${method.id}.`,
  );
}

/** Parameters that a whole model is measured with must not change from tensor to tensor. */
export function checkWholeModel(
  method: MergeMethod,
  tensors: readonly TensorPlan[],
  problems: Problems,
): void {
  if (!method.wholeModel) return;
  const first = new Map<string, ResolvedParameters[string] | undefined>();
  for (const { name, models, parameters } of tensors) {
    for (const { id, parameters: own } of models) {
      for (const parameter of method.wholeModel(parameters)) {
        const key = `${id}\n${parameter}`;
        if (!first.has(key)) first.set(key, own[parameter]);
        else if (first.get(key) !== own[parameter]) {
          problems.error(
            'ParameterVaries',
            `${parameter} of ${id} changes from tensor to tensor, but it is measured on the whole model.`,
            `Give one ${parameter} per model, or choose semantics that work tensor by tensor.`,
            [name],
          );
        }
      }
    }
  }
}
