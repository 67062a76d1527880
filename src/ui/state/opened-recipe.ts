/** Opening a whole recipe in the studio: an example, or a text from elsewhere. */

import type { Combination } from '../../formats/adapter-combination';
import {
  DEFAULT_SHARD_BYTES,
  type ParameterSetting,
  parseModelRef,
  type Recipe,
  type RecipeLevel,
} from '../../formats/recipe';
import { recipeModels } from '../../formats/recipe-models';
import type { MergeMethod } from '../../merge/method';
import { methodById } from '../../merge/methods/index';
import { onlyUnknown, unknownNames, withoutUnknown } from '../../merge/recipe-names';
import type { ModelInfo } from '../../reports/models';
import { buildRecipe, contributorId } from './built-recipe';
import { canonicalText } from './recipe-identity';
import {
  addContributor,
  DEFAULT_RANK,
  emptyRecipe,
  type RecipeState,
  type SettingValue,
  setBase,
  setContributorParameter,
  settingValue,
} from './recipe-state';
import { editRecipe, notify, type Studio, setView } from './studio';

/** Replaces the recipe: by form fields where it fits, else as written. Names without effect are said. */
export function openRecipe(studio: Studio, recipe: Recipe): void {
  const { models } = studio.store.getState();
  editRecipe(studio, () => recipeState(recipe, models));
  setView(studio, { dialog: null });
  const unknown = unknownNames(recipe, methodById);
  for (const { message, remedy } of unknown.slice(0, 3)) notify(studio, 'note', message, remedy);
}

/** Opens a recipe's YAML file in the place of the recipe that is there. @throws AmalgamError `RecipeInvalid` */
export async function openRecipeFile(studio: Studio, file: File): Promise<void> {
  const { recipeOfText } = await import('../../formats/recipe-yaml');
  openRecipe(studio, recipeOfText(file.name, await file.text()));
  notify(studio, 'note', `Opened the recipe ${file.name}.`, 'Undo brings the recipe before it back.');
}

/**
 * The state of a recipe. Base and contributors are known either way; what the form has no field for (slices, filters
 * by name, stages, …) stays in `asWritten`, and that is merged then. Names without effect turn no form off. Pure.
 */
export function recipeState(written: Recipe, models: readonly ModelInfo[]): RecipeState {
  const method = methodById.get(written.mergeMethod);
  const named = contributorsOf(written, models);
  if (!method) return { ...named, asWritten: written };
  const recipe = completed(written, method);
  const form = (recipe.models ?? []).reduce<RecipeState>(
    (filled, { parameters }, i) => {
      const ref = filled.contributors[i]?.ref;
      return ref === undefined
        ? filled
        : Object.entries(parameters).reduce<RecipeState>(
            (f, [name, value]) =>
              setContributorParameter(f, ref, name, asChosen(method, name, value as SettingValue)),
            filled,
          );
    },
    {
      ...named,
      method: method.id,
      parameters: Object.fromEntries(
        Object.entries(recipe.parameters).map(([name, value]) => [
          name,
          asChosen(method, name, value as SettingValue),
        ]),
      ),
      outDtype: recipe.outDtype ?? null,
      output: recipe.amalgam.output ?? 'model',
      combination: combinationIn(recipe) ?? null,
      rank: recipe.amalgam.rank ?? DEFAULT_RANK,
      energy: recipe.amalgam.energy ?? (recipe.amalgam.rank === undefined ? 0.95 : null),
      shardBytes: recipe.amalgam.shardBytes ?? DEFAULT_SHARD_BYTES,
      gguf: recipe.amalgam.gguf ?? null,
      ggufOnly: recipe.amalgam.ggufOnly ?? false,
      imatrix: recipe.amalgam.imatrix ?? null,
      seed: recipe.amalgam.seed ?? 0,
      tokenizerSource: recipe.tokenizerSource ?? null,
      padToMultipleOf: recipe.tokenizer?.padToMultipleOf ?? 1,
      chatTemplate: recipe.chatTemplate ?? null,
      // an imported recipe stays unchanged; one without curves has no setting for them
      gradientEnds: hasGradient(recipe) ? (recipe.amalgam.gradientEnds ?? 'mergekit') : 'nearest',
      include: recipe.amalgam.include ?? [],
      exclude: recipe.amalgam.exclude ?? [],
    },
  );
  const levels = (written.models ?? []).map((model, i) => [
    named.contributors[i]?.ref,
    onlyUnknown(model, method, true),
  ]);
  const withoutEffect = { ...Object.fromEntries(levels), '': onlyUnknown(written, method, false) };
  return isPlainForm(recipe) && meansTheSame(recipe, buildRecipe(form, models, method), method)
    ? { ...form, withoutEffect }
    : { ...named, method: method.id, asWritten: written };
}

type Level = Pick<RecipeLevel, 'parameters' | 'ignored'>;

/**
 * The recipe without names that have no effect. Where one of them is there, it may be meant for a parameter that has to be
 * given: that one is then as the form begins with it.
 */
function completed(written: Recipe, method: MergeMethod): Recipe {
  const withGiven = <L extends Level>(
    level: L,
    own: Level,
    specs: MergeMethod['parameters'],
    ofModel: boolean,
  ) => {
    const { ignored, parameters } = onlyUnknown(own, method, ofModel);
    if (!ignored && Object.keys(parameters).length === 0) return level;
    const needed = Object.entries(specs).filter(([, spec]) => spec.default === undefined && !spec.inert);
    const begun = needed.map(([name, spec]) => [name, settingValue({}, name, spec)]);
    return { ...level, parameters: { ...Object.fromEntries(begun), ...level.parameters } };
  };
  const recipe = withoutUnknown(written, method);
  const models = recipe.models?.map((m, i) =>
    withGiven(m, written.models![i]!, method.modelParameters, true),
  );
  return { ...withGiven(recipe, written, method.parameters, false), ...(models && { models }) };
}

/** Base and contributors, each once, in the order they are named. */
function contributorsOf(recipe: Recipe, models: readonly ModelInfo[]): RecipeState {
  const refs = recipeModels(recipe);
  const isModel = (ref: string | undefined) => ref !== undefined && refs.includes(ref);
  const named = [recipe, ...(recipe.stages ?? [])].map((part) => part.baseModel).find(isModel);
  // a recipe without a base has one in the studio where it needs it for its adapters
  const base = named ?? refs.map(parseModelRef).find(({ adapter }) => adapter)?.model.path;
  const start = base === undefined ? emptyRecipe : setBase(emptyRecipe, base);
  return refs
    .filter((ref) => ref !== base)
    .map((ref) => {
      const { adapter } = parseModelRef(ref);
      const opened = adapter && models.find((m) => m.ref === adapter.path && m.kind === 'adapter');
      return opened && contributorId(start.base, opened.ref, models) === ref ? opened.ref : ref;
    })
    .reduce((filled, ref) => addContributor(filled, ref), start);
}

/** A value as the form has it: mergekit's true and false of a choice are words here. */
function asChosen(method: MergeMethod, name: string, value: SettingValue): SettingValue {
  const spec = method.parameters[name] ?? method.modelParameters[name];
  if (spec?.kind !== 'choice' || typeof value !== 'boolean') return value;
  return spec.booleans?.[`${value}`] ?? value;
}

/** One value or one curve for every parameter, and no more than models and a method. */
function isPlainForm({ parameters, models = [], slices, stages }: Recipe): boolean {
  return !slices && !stages && settingsOf({ parameters, models }).every((s) => !isFiltered(s));
}

function settingsOf({ parameters, models = [] }: Pick<Recipe, 'parameters' | 'models'>): ParameterSetting[] {
  return [parameters, ...models.map((m) => m.parameters)].flatMap((level) => Object.values(level));
}

function isFiltered(setting: ParameterSetting): boolean {
  return Array.isArray(setting) && setting.some((entry) => typeof entry !== 'number');
}

function hasGradient(recipe: Recipe): boolean {
  return settingsOf(recipe).some(Array.isArray);
}

/** How a recipe becomes a LoRA, where it says so: by name, or by a share to keep. */
function combinationIn({ amalgam }: Recipe): Combination | undefined {
  return amalgam.combination ?? (amalgam.energy === undefined ? undefined : 'merged_svd');
}

/** Whether the form, which writes out defaults, says all that the recipe says and nothing else. */
function meansTheSame(recipe: Recipe, built: Recipe, method: MergeMethod): boolean {
  const values = (specs: MergeMethod['parameters'], parameters: Recipe['parameters']) => {
    const names = new Set([...Object.keys(specs), ...Object.keys(parameters)]);
    return [...names].sort().map((name) => {
      const given = parameters[name];
      const spec = specs[name];
      if (given !== undefined && (Array.isArray(given) || !spec)) return [name, given];
      if (!spec || spec.inert) return [name];
      return [name, given === undefined ? (spec.default ?? null) : asChosen(method, name, given)];
    });
  };
  const said = ({ models, parameters, amalgam, ...rest }: Recipe) => ({
    ...rest,
    // the form writes the dtype out
    outDtype: recipe.outDtype === undefined ? undefined : rest.outDtype,
    // the form keeps the base of a method that works without one, for its adapters
    baseModel: method.base === 'none' ? undefined : rest.baseModel,
    name: undefined,
    models: models?.map((m) => [m.model, values(method.modelParameters, m.parameters)]),
    parameters: values(method.parameters, parameters),
    amalgam: {
      ...amalgam,
      combination: combinationIn({ ...rest, parameters, amalgam }),
      seed: amalgam.seed ?? 0,
      shardBytes: amalgam.shardBytes ?? DEFAULT_SHARD_BYTES,
      gradientEnds: hasGradient(recipe) ? (amalgam.gradientEnds ?? 'mergekit') : undefined,
    },
  });
  return canonicalText(said(recipe)) === canonicalText(said(built));
}
