/** Which tensors a recipe means: its include and exclude, and patterns that mean none. */
import { counted } from '../../formats/quantity';
import { type ParameterSetting, type Recipe, recipeLevels } from '../../formats/recipe';
import { matchesTensor, towerFilters } from '../../formats/tensor-pattern';
import type { Model } from '../../inputs/model';
import { nameSome, type Problems } from '../../inputs/problems';
import type { TensorPlan } from './plan';

/** Whether a recipe leaves tensors as the base has them. */
export function leavesOut({ amalgam: { include, exclude } }: Recipe): boolean {
  return include !== undefined || exclude !== undefined;
}

/** Whether a tensor keeps the base's bytes: not included, or excluded. `name` is the one it has in the output. */
export function leftOut({ amalgam: { include, exclude } }: Recipe, name: string): boolean {
  const among = (patterns: readonly string[]) => patterns.some((pattern) => matchesTensor(pattern, name));
  return (include !== undefined && !among(include)) || (exclude !== undefined && among(exclude));
}

/**
 * Says which tensors the recipe leaves as the base has them, and warns of patterns that mean no tensor: they are
 * misspelled.
 *
 * @param tensors of the output; filters of a model are matched against the names of its own tensors as well
 */
export function checkPatterns(
  recipe: Recipe,
  tensors: readonly TensorPlan[],
  models: Iterable<Model>,
  problems: Problems,
): void {
  const kept = tensors.filter((tensor) => tensor.leftOut).map(({ name }) => name);
  if (tensors.length > 0 && kept.length === tensors.length) {
    problems.error(
      'NothingToMerge',
      'include and exclude leave every tensor as the base has it.',
      'Change include or exclude so that something is merged.',
    );
  } else if (kept.length > 0) {
    problems.note(
      'TensorsLeftOut',
      `${kept.length} of ${counted(tensors.length, 'tensor')} ${kept.length === 1 ? 'is' : 'are'} left out of the merge and ${kept.length === 1 ? 'stays as the base has it' : 'stay as the base has them'}.`,
      'No action needed: include and exclude say so.',
      kept,
    );
  }
  const patterns = patternsOf(recipe);
  if (patterns.size === 0) return;
  const names = new Set(tensors.map((tensor) => tensor.name));
  for (const model of models) for (const tensor of model.tensors.values()) names.add(tensor.name);
  const means = (pattern: string) => [...names].some((name) => matchesTensor(pattern, name));
  // a tower is named in all the ways that families have for it; one of them is enough
  const idle = [...patterns].filter(
    (pattern) =>
      !means(pattern) && !towerFilters(pattern).some((other) => patterns.has(other) && means(other)),
  );
  if (idle.length === 0 || names.size === 0) return;
  problems.warn(
    'PatternUnused',
    `No tensor is meant by ${nameSome(idle.map((p) => JSON.stringify(p)))}.`,
    `Names look like ${[...names][Math.floor(names.size / 2)]}; a pattern with * or ? must match all of a name.`,
  );
}

function patternsOf(recipe: Recipe): Set<string> {
  const filters = recipeLevels(recipe).flatMap(({ parameters }) =>
    Object.values(parameters).flatMap(filtersOf),
  );
  return new Set([...filters, ...(recipe.amalgam.include ?? []), ...(recipe.amalgam.exclude ?? [])]);
}

function filtersOf(setting: ParameterSetting): string[] {
  if (!Array.isArray(setting)) return [];
  return setting.flatMap((entry) =>
    typeof entry === 'number' || entry.filter === undefined ? [] : [entry.filter],
  );
}
