import { cachedModelId, isRepoId, namesOneModel } from '../../formats/hub-id';
import { counted } from '../../formats/quantity';
import { parseModelRef, repositoriesOf } from '../../formats/recipe';
import type { ModelInfo } from '../../reports/models';
import { contributorId, shortName } from './built-recipe';
import { addContributor, emptyRecipe, type RecipeState, setBase } from './recipe-state';
import type { StudioState } from './studio-state';

/** Who is the base and who contributes, found out from the models themselves. Pure. */

/** The first recipe of the sample's base and everything made from it. */
export function sampleRecipe(sample: readonly ModelInfo[]): RecipeState {
  const base = sample.find((m) => m.kind === 'checkpoint' && /(^|\/)base$/.test(m.ref));
  return sample
    .filter((m) => m !== base)
    .reduce(
      (recipe, { ref }) => addContributor(recipe, ref),
      base ? setBase(emptyRecipe, base.ref) : emptyRecipe,
    );
}

/** Whether the recipe is the unchanged sample, or empty; added models then replace it. */
export function isUntouched(recipe: RecipeState, models: readonly ModelInfo[]): boolean {
  if (recipe.base === null && recipe.contributors.length === 0) return true;
  const plain = (state: RecipeState) => JSON.stringify({ ...state, origins: {} });
  const sample = models.filter((m) => m.origin === 'sample');
  return sample.length > 0 && plain(recipe) === plain(sampleRecipe(sample));
}

/** The recipe that a model is added to: an untouched sample goes, unless the added model is the sample's own. */
export function recipeToAddTo(
  recipe: RecipeState,
  added: readonly ModelInfo[],
  models: readonly ModelInfo[],
): RecipeState {
  return added.some((m) => m.origin !== 'sample') && isUntouched(recipe, models) ? emptyRecipe : recipe;
}

/**
 * The recipe with a set of opened models in it. Without a base it takes the model which the set's adapters name, or the
 * checkpoint of the set that the others seem to be made from; all others contribute. A named base that is not open stays in
 * the recipe by that name, and its card offers to open it.
 */
export function withModels(
  recipe: RecipeState,
  added: readonly ModelInfo[],
  models: readonly ModelInfo[],
): RecipeState {
  const base = recipe.base === null ? baseOf(added, models) : waitedFor(recipe, recipe.base, added, models);
  const based = base === null ? recipe : setBase(recipe, base);
  const named = base !== null && !models.some((m) => m.ref === base);
  // a path on another computer: no hub has it
  const isPath = named && namedBases(added).some((name) => name !== base);
  const origins = isPath ? { ...based.origins, [base]: { kind: 'local' as const } } : based.origins;
  return added
    .filter((m) => m.ref !== based.base)
    .reduce((filled, m) => addContributor(filled, m.ref), { ...based, origins });
}

/** The added checkpoint that a base which is named and not open means: by its name, or the first that the recipe's adapters fit. */
function waitedFor(
  { contributors }: RecipeState,
  base: string,
  added: readonly ModelInfo[],
  models: readonly ModelInfo[],
): string | null {
  if (models.some((m) => m.ref === base)) return null;
  const checkpoints = added.filter((m) => m.kind === 'checkpoint');
  const adapters = models.filter(
    (m) => m.kind === 'adapter' && contributors.some(({ ref }) => ref === m.ref),
  );
  const isFit = (m: ModelInfo) => adapters.length > 0 && adapters.every((adapter) => fitsWeights(adapter, m));
  return (checkpoints.find((m) => isBaseOf(base, m)) ?? checkpoints.find(isFit))?.ref ?? null;
}

function baseOf(added: readonly ModelInfo[], models: readonly ModelInfo[]): string | null {
  const named = namedBases(added);
  const checkpoints = added.filter((m) => m.kind === 'checkpoint');
  const others = models.filter((m) => m.kind === 'checkpoint' && m.origin !== 'sample');
  const meant = [...checkpoints, ...others].find((m) => named.some((name) => isBaseOf(name, m)));
  if (meant) return meant.ref;
  const likely = likeliestBase(checkpoints);
  if (likely) return likely.ref;
  const [name] = named;
  if (name === undefined) return null;
  return isRepoId(name) ? name : shortName(name.replaceAll('\\', '/'));
}

/** Bases named by the adapters, the most frequent first. */
function namedBases(added: readonly ModelInfo[]): string[] {
  const names = added.flatMap((m) => m.adapter?.baseModel ?? []);
  const times = (name: string) => names.filter((other) => other === name).length;
  return [...new Set(names)].sort((a, b) => times(b) - times(a));
}

/** The checkpoint called base, else the one whose name all others begin with, else the first. */
function likeliestBase(checkpoints: readonly ModelInfo[]): ModelInfo | undefined {
  const names = checkpoints.map((m) => shortName(m.ref).toLowerCase());
  const called = checkpoints.find((_, i) => /(^|[-_. ])base($|[-_. ])/.test(names[i]!));
  const stem = checkpoints.find((_, i) => names.every((name) => name.startsWith(names[i]!)));
  return called ?? stem ?? checkpoints[0];
}

// How a contributor is related to the chosen base, by its own config and card. Pure.

interface Lineage {
  text: string;
  tone: 'ok' | 'plain' | 'warn';
  /** The long form, for the tooltip. */
  why: string;
}

/** The badge of a contributor's card. */
export function lineage(model: ModelInfo, base: ModelInfo | undefined): Lineage {
  if (model.kind === 'adapter') return adapterLineage(model, base);
  const [family, layers] = [model.family, model.layers];
  if (base?.family !== undefined && family !== undefined && family !== base.family) {
    const why = `Its architecture (${family}) is not that of the base (${base.family}).`;
    return { text: `${family}, not ${base.family}`, tone: 'warn', why };
  }
  if (base?.layers !== undefined && layers !== undefined && layers !== base.layers) {
    const why = `It has ${counted(layers, 'layer')}, the base has ${base.layers}.`;
    return { text: `${counted(layers, 'layer')}, not ${base.layers}`, tone: 'warn', why };
  }
  const why = 'A complete checkpoint: its change is its weights minus the base.';
  return { text: 'fine-tune', tone: 'plain', why };
}

function adapterLineage(model: ModelInfo, base: ModelInfo | undefined): Lineage {
  const { summary = 'Adapter', baseModel: parent } = model.adapter ?? {};
  const trained =
    parent === undefined
      ? `${summary}. It does not say which base it was trained on.`
      : `${summary}, trained on ${parent}.`;
  const plain: Lineage = { text: 'adapter', tone: 'plain', why: trained };
  if (!base) return plain;
  const fit = fitsWeights(model, base);
  const why = `${trained} Its factors ${fit ? '' : 'do not '}fit the weights of ${base.title}.`;
  if (fit === false) return { text: 'of another base', tone: 'warn', why };
  if (parent !== undefined && isBaseOf(parent, base))
    return { text: 'matches base', tone: 'ok', why: trained };
  return fit ? { text: 'fits', tone: 'ok', why } : plain;
}

/** Whether the factors of an adapter fit the weights of a model; undefined where the shapes of one are not known. */
function fitsWeights(adapter: ModelInfo, model: ModelInfo): boolean | undefined {
  const [wanted, stored] = [adapter.weights, model.weights];
  if (!wanted || !stored || model.kind !== 'checkpoint') return undefined;
  const names = Object.keys(stored);
  return Object.entries(wanted).every(([name, shapes]) => {
    const found = names.find(
      (other) => other === name || other.endsWith(`.${name}`) || name.endsWith(`.${other}`),
    );
    const turned = (shape: string) => shape.split('×').reverse().join('×');
    return (
      found !== undefined &&
      shapes.every((shape) => stored[found]!.some((other) => other === shape || other === turned(shape)))
    );
  });
}

/**
 * Whether an adapter that names `parent` as its base (`base_model_name_or_path`) means this model. What it names is an id
 * on the Hub, or a path on the computer it was trained on: a folder is known by its own name alone.
 */
function isBaseOf(parent: string, model: Pick<ModelInfo, 'ref' | 'origin'>): boolean {
  const asked = cachedModelId(parent) ?? parseModelRef(parent).model.path;
  const { path } = parseModelRef(model.ref).model;
  const own = cachedModelId(path) ?? path;
  if (asked === own) return true;
  const bothOnHub = isRepoId(asked) && asked.includes('/') && (model.origin === 'hub' || own !== path);
  if (bothOnHub) return namesOneModel(asked, own);
  const last = (name: string) => name.split(/[/\\]/).filter(Boolean).at(-1) ?? '';
  return model.origin !== 'sample' && namesOneModel(last(asked), last(own));
}

/** Which models a tool can be given: opened checkpoints, and adapters on the base they belong to. Pure. */

interface ModelChoice {
  /** `path` or `base+adapter`. */
  ref: string;
  label: string;
  group: 'Models' | 'Adapters on their base';
}

type ModelsState = Pick<StudioState, 'models' | 'recipe'>;

/** Every model that can be chosen; an adapter whose base is not opened stands on the recipe's base. */
export function modelChoices({ models, recipe }: ModelsState): ModelChoice[] {
  const checkpoints = models.filter((m) => m.kind === 'checkpoint');
  const names = shownNames(checkpoints);
  const choices: ModelChoice[] = checkpoints.map((m) => ({
    ref: m.ref,
    label: names.get(m.ref) ?? m.ref,
    group: 'Models',
  }));
  for (const adapter of models.filter((m) => m.kind === 'adapter')) {
    const base = fittingBase(adapter, checkpoints) ?? recipe.base;
    if (base === null) continue;
    choices.push({
      ref: contributorId(base, adapter.ref, models),
      label: `${names.get(base) ?? shortName(base)} + ${shortName(adapter.ref)}`,
      group: 'Adapters on their base',
    });
  }
  return choices;
}

/** Every LoRA, on its base where that is open. */
export function loraChoices(state: ModelsState): { value: string; label: string }[] {
  const onBase = modelChoices(state).filter(({ group }) => group === 'Adapters on their base');
  return state.models.flatMap(({ ref, kind }) => {
    if (kind !== 'adapter') return [];
    const own = onBase.find(
      (choice) => parseModelRef(choice.ref).adapter?.path === parseModelRef(ref).model.path,
    );
    return [{ value: own?.ref ?? ref, label: shortName(ref) }];
  });
}

/** The model as chosen, else the recipe's base, else the first checkpoint there is. */
export function chosenModel({ models, recipe }: ModelsState, chosen: string | null): string | null {
  const isOpen = (ref: string | null) => ref !== null && checkpointOf(models, ref) !== undefined;
  const first = models.find((m) => m.kind === 'checkpoint')?.ref ?? null;
  return [chosen, recipe.base].find(isOpen) ?? first;
}

/** The opened checkpoint of `base`, or of `base+adapter`. */
export function checkpointOf(models: readonly ModelInfo[], ref: string): ModelInfo | undefined {
  const [path] = repositoriesOf(ref);
  return models.find((m) => m.ref === path);
}

/** `base`, `workshop`; `base + kitchen` for an adapter on its base. */
export function choiceName(ref: string): string {
  const { model, adapter } = parseModelRef(ref);
  const last = (path: string) => path.split('/').filter(Boolean).at(-1) ?? path;
  return adapter ? `${last(model.path)} + ${last(adapter.path)}` : last(model.path);
}

/** A name for files made of these models: `compare-base-workshop`. */
export function fileNameOf(...parts: readonly string[]): string {
  return parts
    .map(choiceName)
    .join('-')
    .replace(/[^A-Za-z0-9._-]+/g, '-');
}

function fittingBase(adapter: ModelInfo, checkpoints: readonly ModelInfo[]): string | null {
  return checkpoints.find((m) => lineage(adapter, m).tone === 'ok')?.ref ?? null;
}

/** Short names where they distinguish the models, whole references where they do not. */
function shownNames(models: readonly ModelInfo[]): Map<string, string> {
  const short = models.map((m) => shortName(m.ref));
  return new Map(
    models.map((m, i) => [m.ref, short.filter((name) => name === short[i]).length > 1 ? m.ref : short[i]!]),
  );
}

// The two models of a comparison, and why there are none. Pure.

type PairState = Pick<StudioState, 'models' | 'recipe'> & {
  tools: { models: Pick<StudioState['tools']['models'], 'base' | 'finetuned'> };
};

interface ChosenPair {
  base: string | null;
  finetuned: string | null;
}

/** The pair as chosen, else what the recipe suggests: its base, and the last checkpoint or adapter made from it. */
export function pairOf(state: PairState): ChosenPair {
  const { models, recipe, tools } = state;
  const refs = new Set(modelChoices(state).map((c) => c.ref));
  const known = (ref: string | null) => (ref !== null && refs.has(ref) ? ref : null);
  const base =
    known(tools.models.base) ?? known(recipe.base) ?? models.find((m) => m.kind === 'checkpoint')?.ref;
  const made = recipe.contributors.map((c) => contributorId(recipe.base, c.ref, models));
  const suggested = [...made].reverse().find((ref) => refs.has(ref) && ref !== base);
  return { base: base ?? null, finetuned: known(tools.models.finetuned) ?? suggested ?? null };
}

/** Why these two cannot be compared, or null. */
export function pairProblem({ base, finetuned }: ChosenPair): string | null {
  if (base === null) return 'Open a model first: it becomes the base of the pair.';
  return finetuned === null ? 'Choose a model that was fine-tuned from the base.' : null;
}
