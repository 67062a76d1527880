/**
 * The recipe as the studio edits it: plain, serialisable facts, and pure edits from facts to facts. It remembers more
 * than one recipe says (models switched off, settings of methods not in use), so that nothing typed is ever lost.
 */
import { DEFAULT_SHARD_BYTES, type ParameterScalar, type Recipe } from '../../formats/recipe';
import type { MergeMethod, ParameterSpec } from '../../merge/method';

export interface RecipeFacts {
  /** Reference of the base checkpoint. */
  base: string | null;
  contributors: ContributorFacts[];
  /** Id of the merge method. */
  method: string;
  /** Method-wide parameters the person has set; everything else is the method's default. */
  parameters: Settings;
  /** Output dtype; null keeps each tensor's own. */
  outDtype: OutDtype | null;
  /** Largest output shard in bytes. */
  shardBytes: number;
  /** Seed of methods that draw random numbers. */
  seed: number;
  /** Whose tokens the output has: `base`, `union` or a model; null where nothing was chosen. */
  tokenizerSource: string | null;
  /** Rows of the vocabulary are a multiple of this, once one is chosen; 1 adds none. */
  padToMultipleOf: number;
  /** A recipe that says more than the fields above can; while it is there, it is what is merged, as it stands. */
  asWritten: Recipe | null;
}

export interface ContributorFacts {
  /** Reference of the model as opened; unique within a recipe. */
  ref: string;
  enabled: boolean;
  /** Index into the contributor colours; stays with the model while it is in the recipe. */
  colour: number;
  parameters: Settings;
}

export type Settings = Readonly<Record<string, ParameterScalar>>;
export type OutDtype = NonNullable<Recipe['outDtype']>;

/** How many contributor colours the design has; more contributors share them. */
export const CONTRIBUTOR_COLOURS = 8;

export const emptyRecipe: RecipeFacts = {
  base: null,
  contributors: [],
  method: 'ties',
  parameters: {},
  outDtype: null,
  shardBytes: DEFAULT_SHARD_BYTES,
  seed: 0,
  tokenizerSource: null,
  padToMultipleOf: 1,
  asWritten: null,
};

/** Makes `ref` the base. A model cannot be base and contributor at once: it leaves the contributors. */
export function setBase(recipe: RecipeFacts, ref: string): RecipeFacts {
  return { ...recipe, base: ref, contributors: recipe.contributors.filter((c) => c.ref !== ref) };
}

/** Adds a contributor with the settings of the one before it, so that a density chosen once is chosen for all. */
export function addContributor(recipe: RecipeFacts, ref: string): RecipeFacts {
  if (recipe.contributors.some((c) => c.ref === ref)) return recipe;
  const parameters = recipe.contributors.at(-1)?.parameters ?? {};
  const colour = freeColour(recipe.contributors);
  return { ...recipe, contributors: [...recipe.contributors, { ref, enabled: true, colour, parameters }] };
}

export function removeContributor(recipe: RecipeFacts, ref: string): RecipeFacts {
  return { ...recipe, contributors: recipe.contributors.filter((c) => c.ref !== ref) };
}

export function setEnabled(recipe: RecipeFacts, ref: string, enabled: boolean): RecipeFacts {
  return editContributor(recipe, ref, (c) => ({ ...c, enabled }));
}

export function setContributorParameter(
  recipe: RecipeFacts,
  ref: string,
  name: string,
  value: ParameterScalar,
): RecipeFacts {
  return editContributor(recipe, ref, (c) => ({ ...c, parameters: { ...c.parameters, [name]: value } }));
}

export function setParameter(recipe: RecipeFacts, name: string, value: ParameterScalar): RecipeFacts {
  return { ...recipe, parameters: { ...recipe.parameters, [name]: value } };
}

/**
 * Changes the method. Settings are kept, except those that mean something else there: a parameter of the same name
 * with another kind or default goes back to the new method's default.
 */
export function setMethod(recipe: RecipeFacts, from: MergeMethod | undefined, to: MergeMethod): RecipeFacts {
  const kept = Object.entries(recipe.parameters).filter(([name]) => {
    const before = from?.parameters[name];
    const after = to.parameters[name];
    return !before || !after || (before.kind === after.kind && before.default === after.default);
  });
  return { ...recipe, method: to.id, parameters: Object.fromEntries(kept) };
}

/** The value a setting has: what the person chose, else the default, else 1 within the bounds (a weight). */
export function settingValue(settings: Settings, name: string, spec: ParameterSpec): ParameterScalar {
  const chosen = settings[name];
  if (chosen !== undefined) return chosen;
  if (spec.default !== undefined) return spec.default;
  return spec.kind === 'number' ? Math.min(Math.max(1, spec.min), spec.max) : false;
}

/**
 * The parameters a form shows: those with an effect.
 * @param chosen settings of the method: what they switch off is left out. Default: everything that may have an effect
 */
export function effectiveSpecs(
  specs: Readonly<Record<string, ParameterSpec>>,
  chosen?: Settings,
): { name: string; spec: ParameterSpec }[] {
  return Object.entries(specs)
    .filter(([, spec]) => spec.inert !== true)
    .filter(([, { when }]) => !chosen || !when || when.some((w) => chosen[w.parameter] === w.is))
    .map(([name, spec]) => ({ name, spec }));
}

function editContributor(
  recipe: RecipeFacts,
  ref: string,
  edit: (c: ContributorFacts) => ContributorFacts,
): RecipeFacts {
  return { ...recipe, contributors: recipe.contributors.map((c) => (c.ref === ref ? edit(c) : c)) };
}

function freeColour(contributors: readonly ContributorFacts[]): number {
  const used = new Set(contributors.map((c) => c.colour));
  for (let colour = 0; colour < CONTRIBUTOR_COLOURS; colour++) if (!used.has(colour)) return colour;
  return contributors.length % CONTRIBUTOR_COLOURS;
}
