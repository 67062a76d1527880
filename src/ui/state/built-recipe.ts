/** From the studio's state to a `Recipe`, and the names a recipe gets. Pure. */

import { usesImportance } from '../../formats/gguf-type';
import { cachedModelId } from '../../formats/hub-id';
import { outputFolderName } from '../../formats/names';
import { formatSetting } from '../../formats/quantity';
import {
  DEFAULT_SHARD_BYTES,
  formatModelRef,
  parseModelRef,
  type Recipe,
  type RecipeExtensions,
  type RecipeParameters,
} from '../../formats/recipe';
import { drawsRandomly, type MergeMethod, type ParameterSpec } from '../../merge/method';
import { onlyUnknown } from '../../merge/recipe-names';
import type { ModelInfo } from '../../reports/models';
import { methodName } from '../format/method-name';
import {
  combinationOf,
  effectiveSpecs,
  ggufOf,
  hasCurve,
  type OutDtype,
  type RecipeState,
  type Settings,
  type SettingValue,
  scalarValue,
  settingValue,
} from './recipe-state';

/** Fields of a model that a recipe needs. */
export type OpenModel = Pick<ModelInfo, 'ref' | 'kind' | 'dtypes'>;

/**
 * The recipe of this state: enabled contributors in order, an adapter as `base+adapter`, parameters by `written`. Problems
 * of the state are found by `recipeProblems`, not here.
 */
export function buildRecipe(recipe: RecipeState, models: readonly OpenModel[], method: MergeMethod): Recipe {
  if (recipe.asWritten) return recipe.asWritten;
  const amalgam: RecipeExtensions = {};
  if (usesSeed(method, recipe.parameters) && recipe.seed !== 0) amalgam.seed = recipe.seed;
  if (recipe.shardBytes !== DEFAULT_SHARD_BYTES) amalgam.shardBytes = recipe.shardBytes;
  const withUnknown = (of: string, parameters: RecipeParameters) => {
    const kept = recipe.withoutEffect[of];
    if (!kept) return { parameters };
    const unknown = onlyUnknown(kept, method, of !== '');
    return { ...unknown, parameters: { ...unknown.parameters, ...parameters } };
  };
  const gguf = ggufOf(recipe);
  if (gguf) amalgam.gguf = gguf;
  if (gguf && recipe.ggufOnly) amalgam.ggufOnly = true;
  if (gguf && usesImportance(gguf) && recipe.imatrix !== null) amalgam.imatrix = recipe.imatrix;
  if (recipe.gradientEnds === 'nearest' && hasCurve(recipe, method)) amalgam.gradientEnds = 'nearest';
  if (recipe.include.length > 0) amalgam.include = [...recipe.include];
  if (recipe.exclude.length > 0) amalgam.exclude = [...recipe.exclude];
  if (recipe.output === 'adapter') {
    amalgam.output = 'adapter';
    const combination = combinationOf(recipe, models);
    if (recipe.combination !== null || combination === 'merged_svd') amalgam.combination = combination;
    if (combination === 'merged_svd' && recipe.energy !== null) amalgam.energy = recipe.energy;
    else if (combination.endsWith('svd')) amalgam.rank = recipe.rank;
  }
  return {
    mergeMethod: method.id,
    ...((method.base !== 'none' || amalgam.combination === 'merged_svd') && recipe.base !== null
      ? { baseModel: recipe.base }
      : {}),
    models: recipe.contributors
      .filter((c) => c.enabled)
      .map((c) => ({
        model: contributorId(recipe.base, c.ref, models),
        ...withUnknown(c.ref, written(method.modelParameters, c.parameters, recipe.parameters)),
      })),
    ...withUnknown('', written(method.parameters, recipe.parameters, recipe.parameters)),
    ...dtypeChoice(recipe, models, method),
    ...vocabularyChoice(recipe),
    ...(recipe.chatTemplate === null || recipe.output === 'adapter'
      ? {}
      : { chatTemplate: recipe.chatTemplate }),
    amalgam,
  };
}

const DTYPE_NAMES: Partial<Record<string, OutDtype>> = { F32: 'float32', F16: 'float16', BF16: 'bfloat16' };

/**
 * The output's dtype. That of the base is written out where it has one: the bytes are the same, and mergekit then
 * computes in float32 as Amalgam does.
 */
function dtypeChoice(
  { outDtype, base, contributors, output }: RecipeState,
  models: readonly OpenModel[],
  method: MergeMethod,
): Pick<Recipe, 'outDtype'> {
  if (outDtype !== null) return { outDtype };
  if (output === 'adapter') return {};
  const [first] = contributors.filter((c) => c.enabled);
  const isAdapter = models.some((m) => m.ref === first?.ref && m.kind === 'adapter');
  const from = method.base === 'none' && !isAdapter ? first?.ref : base;
  const stored = Object.keys(models.find((m) => m.ref === from)?.dtypes ?? {});
  const name = stored.length === 1 ? DTYPE_NAMES[stored[0] ?? ''] : undefined;
  return name ? { outDtype: name } : {};
}

function vocabularyChoice({
  tokenizerSource,
  padToMultipleOf,
}: RecipeState): Pick<Recipe, 'tokenizerSource' | 'tokenizer'> {
  if (tokenizerSource === null) return {};
  return { tokenizerSource, ...(padToMultipleOf > 1 ? { tokenizer: { padToMultipleOf } } : {}) };
}

/** Id of a contributor in the recipe, the plan and the report: an adapter is `base+adapter`. */
export function contributorId(base: string | null, ref: string, models: readonly OpenModel[]): string {
  const isAdapter = models.find((m) => m.ref === ref)?.kind === 'adapter';
  if (!isAdapter || base === null) return ref;
  return formatModelRef({ model: parseModelRef(base).model, adapter: parseModelRef(ref).model });
}

/** Does the result depend on the seed? */
export function usesSeed(method: MergeMethod, settings: Settings): boolean {
  if (method.compute.kind !== 'delta') return false;
  const resolved = Object.fromEntries(
    Object.entries(method.parameters).map(([name, spec]) => [name, scalarValue(settings, name, spec)]),
  );
  return drawsRandomly(method.compute.preset(resolved));
}

/** The short name of a model: the last part of its path, without a revision; of a copy in the Hub's cache, the Hub's. */
export function shortName(ref: string): string {
  const name = fullName(ref);
  return name.split('/').filter(Boolean).at(-1) ?? name;
}

/** The full name of a model for display: its path, or its name on the Hub. */
export function fullName(ref: string): string {
  const { path } = parseModelRef(ref).model;
  return cachedModelId(path) ?? path;
}

/** The recipe's title: `kitchen + harbour + workshop`. */
export function recipeTitle(recipe: RecipeState): string {
  if (recipe.asWritten?.name !== undefined) return recipe.asWritten.name;
  const names = recipe.contributors.filter((c) => c.enabled).map((c) => shortName(c.ref));
  return names.length === 0 ? 'New merge' : names.join(' + ');
}

/** The method in a few words, with the density where it has an effect and all contributors share one: `TIES 0.20`. */
export function methodTitle(recipe: RecipeState, method: MergeMethod): string {
  const name = methodName(method);
  const spec = effectiveSpecs(method.modelParameters, recipe.parameters).find(
    (s) => s.name === 'density',
  )?.spec;
  if (spec?.kind !== 'number') return name;
  const values = new Set(
    recipe.contributors.filter((c) => c.enabled).map((c) => settingValue(c.parameters, 'density', spec)),
  );
  const [density] = values;
  return values.size === 1 && typeof density === 'number' && density !== spec.default
    ? `${name} ${formatSetting(density, spec.slider?.step)}`
    : name;
}

/** A folder name for the output: `kitchen-harbour-workshop-ties`. */
export function outputName(recipe: RecipeState): string {
  const names = recipe.contributors.filter((c) => c.enabled).map((c) => shortName(c.ref));
  return outputFolderName([...names.slice(0, 4), recipe.method].join('-'));
}

/** `name`, or `name-2`, `name-3`, … where it is taken. */
export function freeName(name: string, taken: readonly string[]): string {
  if (!taken.includes(name)) return name;
  let n = 2;
  while (taken.includes(`${name}-${n}`)) n += 1;
  return `${name}-${n}`;
}

/** mergekit spells some choices as a boolean, and takes any word for true. */
function asSpelled(spec: ParameterSpec, value: SettingValue): SettingValue {
  if (spec.kind !== 'choice' || !spec.booleans) return value;
  return value === spec.booleans.true ? true : value === spec.booleans.false ? false : value;
}

/** Numbers and switches are written out, also at their default; choices and words where they differ from it. */
function written(
  specs: Readonly<Record<string, ParameterSpec>>,
  settings: Settings,
  chosen: Settings,
): RecipeParameters {
  return Object.fromEntries(
    effectiveSpecs(specs, chosen)
      .map(({ name, spec }) => ({ name, spec, value: settingValue(settings, name, spec) }))
      .filter(({ spec, value }) => (spec.kind !== 'choice' && spec.kind !== 'text') || value !== spec.default)
      .map(({ name, spec, value }) => [name, asSpelled(spec, value)]),
  );
}
