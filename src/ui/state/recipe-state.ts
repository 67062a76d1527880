import { type Combination, combinationsOf, parametersOf } from '../../formats/adapter-combination';
import { ADAPTER_GGUF_TYPES, type GgufType } from '../../formats/gguf-type';
import {
  DEFAULT_SHARD_BYTES,
  type ParameterScalar,
  type Recipe,
  type RecipeLevel,
} from '../../formats/recipe';
import type { MergeMethod, ParameterSpec } from '../../merge/method';
import type { ModelInfo } from '../../reports/models';

/**
 * The recipe as the studio edits it: plain, serializable data, and pure edits from one state to the next. It remembers more
 * than one recipe says (models switched off, settings of methods not in use), so that nothing typed is ever lost.
 */

export type ModelOrigin =
  | { kind: 'sample' }
  /** A folder of this computer; once it was open, the bytes of its weight files and `ModelInfo.headers`. */
  | { kind: 'local'; was?: { bytes: number; headers: string } }
  | { kind: 'hub' };

/** By the name of the model in the recipe. */
export type Origins = Readonly<Record<string, ModelOrigin>>;

export interface RecipeState {
  /** Reference of the base checkpoint. */
  base: string | null;
  contributors: ContributorState[];
  /** Id of the merge method. */
  method: string;
  /** Method-wide parameters the user has set; everything else is the method's default. */
  parameters: Settings;
  /** Output dtype; null retains each tensor's own. */
  outDtype: OutDtype | null;
  /** Whether the merge becomes a model or a LoRA of the base. */
  output: 'model' | 'adapter';
  /** How it becomes one; null leaves it to what is merged. */
  combination: Combination | null;
  /** Rank of a LoRA that is cut from singular values. */
  rank: number;
  /** Share of each change that a merge keeps as a LoRA; null: what the rank keeps. */
  energy: number | null;
  /** Largest output shard in bytes. */
  shardBytes: number;
  /** Type of the GGUF file that is written too; null writes none. */
  gguf: GgufType | null;
  /** Writes the GGUF file and no safetensors. */
  ggufOnly: boolean;
  /** Calibration text for the importance matrix of that file; null leaves it open. */
  imatrix: string | null;
  /** Seed of methods that draw random numbers. */
  seed: number;
  /** Source of the output's tokens: `base`, `union` or a model; null where nothing was chosen. */
  tokenizerSource: string | null;
  /** Rows of the vocabulary are a multiple of this, once one is chosen; 1 adds none. */
  padToMultipleOf: number;
  /** The output's: `auto`, the name of a built-in one, or Jinja; null retains the tokenizer's own. */
  chatTemplate: string | null;
  /** Where on a curve over the layers the tensors outside them stand (formats/recipe.ts). */
  gradientEnds: GradientEnds;
  /** Patterns of the only tensors that are merged; empty: all of them. */
  include: readonly string[];
  /** Patterns of tensors that keep the base's bytes. */
  exclude: readonly string[];
  /** Where its models came from, as far as that is known. */
  origins: Origins;
  /** A recipe beyond the fields above; while set, it is merged unchanged. */
  asWritten: Recipe | null;
  /** Names of the text without effect, by contributor and under `''` of the recipe: they stay in it, and are warned of. */
  withoutEffect: Readonly<Record<string, Pick<RecipeLevel, 'parameters' | 'ignored'>>>;
}

export interface ContributorState {
  /** Reference of the model as opened; unique within a recipe. */
  ref: string;
  enabled: boolean;
  /** Index into the contributor colors; stays with the model while it is in the recipe. */
  color: number;
  parameters: Settings;
}

export type Settings = Readonly<Record<string, SettingValue>>;
/** One value, or a curve: equally spaced points over the layers. */
export type SettingValue = ParameterScalar | number[];
export type GradientEnds = NonNullable<Recipe['amalgam']['gradientEnds']>;
export type OutDtype = NonNullable<Recipe['outDtype']>;

/** How many contributor colors the design has; more contributors share them. */
export const CONTRIBUTOR_COLORS = 8;

/** Rank of a merged LoRA unless another is chosen. */
export const DEFAULT_RANK = 16;

/**
 * The mean of the changes: of what reads no text and needs no tuning it was better than the base on every set of models
 * measured (docs/importance.md), and it never goes beyond what one of the models learned.
 */
const FIRST = { method: 'task_arithmetic', parameters: { normalize: true } };

export const emptyRecipe: RecipeState = {
  base: null,
  contributors: [],
  ...FIRST,
  outDtype: null,
  output: 'model',
  combination: null,
  rank: DEFAULT_RANK,
  energy: 0.95,
  shardBytes: DEFAULT_SHARD_BYTES,
  gguf: null,
  ggufOnly: false,
  imatrix: null,
  seed: 0,
  tokenizerSource: null,
  padToMultipleOf: 1,
  chatTemplate: null,
  gradientEnds: 'nearest',
  include: [],
  exclude: [],
  origins: {},
  asWritten: null,
  withoutEffect: {},
};

/** Makes `ref` the base. A model cannot be base and contributor at once: it leaves the contributors. */
export function setBase(recipe: RecipeState, ref: string): RecipeState {
  return { ...recipe, base: ref, contributors: recipe.contributors.filter((c) => c.ref !== ref) };
}

/**
 * Adds a contributor with the settings of the one before it, so that a density chosen once is chosen for all; its
 * calibration text is its own affair.
 */
export function addContributor(recipe: RecipeState, ref: string): RecipeState {
  if (recipe.contributors.some((c) => c.ref === ref)) return recipe;
  const { calibration: _, ...parameters } = recipe.contributors.at(-1)?.parameters ?? {};
  const color = freeColor(recipe.contributors);
  return { ...recipe, contributors: [...recipe.contributors, { ref, enabled: true, color, parameters }] };
}

export function removeContributor(recipe: RecipeState, ref: string): RecipeState {
  return { ...recipe, contributors: recipe.contributors.filter((c) => c.ref !== ref) };
}

/** Moves a contributor to place `to`, counted from 0; past either end it stays there. */
export function moveContributor(recipe: RecipeState, ref: string, to: number): RecipeState {
  const from = recipe.contributors.findIndex((c) => c.ref === ref);
  const place = Math.min(recipe.contributors.length - 1, Math.max(0, to));
  const moved = recipe.contributors[from];
  if (!moved || place === from) return recipe;
  const others = recipe.contributors.filter((c) => c !== moved);
  return { ...recipe, contributors: [...others.slice(0, place), moved, ...others.slice(place)] };
}

export function setEnabled(recipe: RecipeState, ref: string, enabled: boolean): RecipeState {
  return editContributor(recipe, ref, (c) => ({ ...c, enabled }));
}

export function setContributorParameter(
  recipe: RecipeState,
  ref: string,
  name: string,
  value: SettingValue,
): RecipeState {
  return editContributor(recipe, ref, (c) => ({ ...c, parameters: { ...c.parameters, [name]: value } }));
}

export function setParameter(recipe: RecipeState, name: string, value: SettingValue): RecipeState {
  return { ...recipe, parameters: { ...recipe.parameters, [name]: value } };
}

/**
 * Changes the method. Settings stay, except those that mean something else there: a parameter of the same name with another
 * kind or default goes back to the new method's default, and what the method before recommended goes with it.
 */
export function setMethod(recipe: RecipeState, from: MergeMethod | undefined, to: MergeMethod): RecipeState {
  const kept = Object.entries(recipe.parameters).filter(([name]) => {
    const before = from?.parameters[name];
    const after = to.parameters[name];
    return !before || !after || (before.kind === after.kind && before.default === after.default);
  });
  const isRecommended = ([name, value]: [string, SettingValue]) => {
    const recommended = recommendedValue(from, name);
    return recommended !== undefined && value === recommended && recommended !== recommendedValue(to, name);
  };
  const contributors = recipe.contributors.map((c) => ({
    ...c,
    parameters: Object.fromEntries(Object.entries(c.parameters).filter((own) => !isRecommended(own))),
  }));
  return setRecommended(
    { ...recipe, contributors, method: to.id, parameters: Object.fromEntries(kept) },
    to,
    recipe.contributors.map((c) => c.ref),
  );
}

function recommendedValue(method: MergeMethod | undefined, name: string): number | undefined {
  const spec = method?.modelParameters[name];
  return spec?.kind === 'number' ? spec.recommended : undefined;
}

/** Settings recommended by the method for these contributors, where nothing was chosen. */
export function setRecommended(
  recipe: RecipeState,
  { modelParameters }: MergeMethod,
  refs: readonly string[],
): RecipeState {
  const values = Object.entries(modelParameters).flatMap(([name, spec]) =>
    spec.kind === 'number' && spec.recommended !== undefined ? [[name, spec.recommended] as const] : [],
  );
  const lacks = (c: ContributorState) =>
    refs.includes(c.ref) && values.some(([name]) => c.parameters[name] === undefined);
  if (!recipe.contributors.some(lacks)) return recipe;
  return {
    ...recipe,
    contributors: recipe.contributors.map((c) =>
      lacks(c) ? { ...c, parameters: { ...Object.fromEntries(values), ...c.parameters } } : c,
    ),
  };
}

/** Value of a setting: the user's choice, else the default, else 1 within the bounds (a weight). */
export function settingValue(settings: Settings, name: string, spec: ParameterSpec): SettingValue {
  const chosen = settings[name];
  if (chosen !== undefined) return chosen;
  if (spec.default !== undefined) return spec.default;
  return spec.kind === 'number' ? Math.min(Math.max(1, spec.min), spec.max) : false;
}

/** The same as one value: of a curve its first point. */
export function scalarValue(settings: Settings, name: string, spec: ParameterSpec): ParameterScalar {
  const value = settingValue(settings, name, spec);
  return Array.isArray(value) ? (value[0] ?? Number.NaN) : value;
}

/** Does a parameter that has an effect follow a curve? */
export function hasCurve(recipe: RecipeState, method: MergeMethod): boolean {
  const levels: [MergeMethod['parameters'], Settings][] = [
    [method.parameters, recipe.parameters],
    ...recipe.contributors
      .filter((c) => c.enabled)
      .map((c): [MergeMethod['parameters'], Settings] => [method.modelParameters, c.parameters]),
  ];
  return levels.some(([specs, settings]) =>
    effectiveSpecs(specs, recipe.parameters).some(({ name }) => Array.isArray(settings[name])),
  );
}

/**
 * The parameters a form shows: those with an effect.
 * @param chosen settings of the method; parameters they switch off are left out. Default: everything that may have an
 *   effect
 * @param combination of LoRAs into a LoRA; parameters it does not read are left out
 */
export function effectiveSpecs(
  specs: Readonly<Record<string, ParameterSpec>>,
  chosen?: Settings,
  combination?: Combination,
): { name: string; spec: ParameterSpec }[] {
  return Object.entries(specs)
    .filter(([, spec]) => spec.inert !== true)
    .filter(([, { when }]) => !chosen || !when || when.some((w) => chosen[w.parameter] === w.is))
    .filter(([name]) => !combination || parametersOf(combination, chosen?.match).includes(name))
    .map(([name, spec]) => ({ name, spec }));
}

function editContributor(
  recipe: RecipeState,
  ref: string,
  edit: (c: ContributorState) => ContributorState,
): RecipeState {
  return { ...recipe, contributors: recipe.contributors.map((c) => (c.ref === ref ? edit(c) : c)) };
}

function freeColor(contributors: readonly ContributorState[]): number {
  const used = new Set(contributors.map((c) => c.color));
  for (let color = 0; color < CONTRIBUTOR_COLORS; color++) if (!used.has(color)) return color;
  return contributors.length % CONTRIBUTOR_COLORS;
}

/** How the models of this recipe become a LoRA: by their factors where all are LoRAs and the method can, or as a cut of the change. */
export function combinationOf(
  { method, combination, contributors }: RecipeState,
  models: readonly Pick<ModelInfo, 'ref' | 'kind'>[],
): Combination {
  const known = combinationsOf(method);
  if (combination !== null && known.includes(combination)) return combination;
  const isWhole = ({ ref, enabled }: ContributorState) =>
    enabled && models.some((m) => m.ref === ref && m.kind === 'checkpoint');
  return contributors.some(isWhole) ? 'merged_svd' : known[0]!;
}

/** The same where a LoRA is the output and has factors of LoRAs. */
export function outputCombination(
  recipe: RecipeState,
  models: readonly Pick<ModelInfo, 'ref' | 'kind'>[],
): Combination | undefined {
  const combination = combinationOf(recipe, models);
  return recipe.output === 'adapter' && combination !== 'merged_svd' ? combination : undefined;
}

/** The type of its GGUF file; none where LoRAs become a LoRA, which has fewer types, and the one chosen is not among them. */
export function ggufOf({ output, gguf }: RecipeState): GgufType | null {
  return gguf !== null && (output === 'model' || ADAPTER_GGUF_TYPES.includes(gguf)) ? gguf : null;
}
