/** Opening models and putting them into the recipe. */

import { folderIn } from '../../platform';
import type { LocalFile, ModelInfo } from '../../reports/models';
import { saveFolders } from '../local/database';
import { type PickedFiles, type PickedHandle, walkHandle, whyLinked } from '../local/local-files';
import { freeName, shortName } from './built-recipe';
import type { SavedOutput } from './job-state';
import { type Pins, withOpened } from './model-origins';
import { openRecipeFile } from './opened-recipe';
import { addContributor, type RecipeState, setBase, setRecommended } from './recipe-state';
import { isOfImages, needsNoBase } from './recipe-validation';
import { recipeToAddTo, sampleRecipe, withModels } from './roles';
import {
  type AddTarget,
  editRecipe,
  methodOf,
  noticed,
  notify,
  notifyError,
  type Studio,
  setView,
} from './studio';

/**
 * Opens the sample family and, on an empty recipe, makes the first merge of it: TIES 0.2 of everything. Rejects with what
 * the engine says.
 * @param asRecipe whether an empty recipe is to be filled
 */
export async function openSample(studio: Studio, asRecipe: boolean): Promise<void> {
  const opened = await whileOpening(studio, 'the sample', () => studio.worker.openSample());
  remember(studio, opened);
  if (!asRecipe) return;
  editRecipe(studio, (recipe) =>
    recipe.base === null && recipe.contributors.length === 0 ? sampleRecipe(opened) : recipe,
  );
}

/**
 * Opens local files and returns the models found in them. Rejects with the engine's error.
 * @param handles of the folders, to be opened again after a reload
 */
export async function openLocal(
  studio: Studio,
  files: LocalFile[],
  handles: readonly PickedHandle[] = [],
): Promise<ModelInfo[]> {
  const linked = whyLinked({ files, handles: [...handles] });
  if (linked) throw linked;
  const named = inFolder(files, studio.store.getState().models);
  const folder = named[0]?.path.split('/')[0] ?? 'files';
  const opened = await whileOpening(studio, folder, () => studio.worker.openLocal(named));
  remember(studio, opened);
  const names = opened.map((m) => m.ref);
  // without storage the user has to choose the folder again
  saveFolders(handles, names).catch(() => {});
  return opened;
}

/**
 * Opens a Hub model by id (with revision) or URL. Rejects with the engine's error.
 * @param instead the name in the recipe that it takes the place of
 */
export async function openHub(
  studio: Studio,
  idOrUrl: string,
  signal: AbortSignal,
  instead = idOrUrl,
): Promise<ModelInfo> {
  const opened = await whileOpening(studio, idOrUrl, () => studio.worker.openHub(idOrUrl, signal));
  remember(studio, [opened], { [instead]: opened.ref });
  return opened;
}

/** Opens dropped or picked files and assigns base and contributors; a recipe's file is opened as recipe. */
export async function addFiles(studio: Studio, picked: PickedFiles): Promise<void> {
  const recipes = picked.files.filter(({ path }) => /^[^/]+\.ya?ml$/i.test(path));
  const files = picked.files.filter((file) => !recipes.includes(file));
  await noticed(studio, async () => {
    if (files.length > 0 || recipes.length === 0) {
      const opened = await openLocal(studio, files, picked.handles);
      addModels(studio, opened);
      const names = opened.map((m) => shortName(m.ref)).join(', ');
      notify(studio, 'note', `Opened ${names}.`, 'Read in place; nothing is copied or uploaded.');
    }
    for (const { file } of recipes) await openRecipeFile(studio, file);
  });
}

/** Puts opened models into the recipe, each where it belongs; an untouched sample makes way. */
export function addModels(studio: Studio, added: readonly ModelInfo[]): void {
  const { models } = studio.store.getState();
  editRecipe(studio, (recipe) => {
    const filled = withModels(recipeToAddTo(recipe, added, models), added, models);
    return withOutput(recommended(filled, added), recipe.base, models);
  });
}

/**
 * Puts an opened model into the recipe, where it is meant for it; an untouched sample makes way. A base is one, and its dialog
 * closes; contributors can be added one after the other.
 */
export function takeModel(studio: Studio, ref: string, target: AddTarget): void {
  const { models } = studio.store.getState();
  const added = models.filter((m) => m.ref === ref);
  if (target === 'library') return;
  if (target === 'base') setView(studio, { dialog: null });
  editRecipe(studio, (recipe) => {
    const start = recipeToAddTo(recipe, added, models);
    // an adapter names its base
    const isAdapter = added[0]?.kind === 'adapter';
    if (target === 'base' && !isAdapter) return withOutput(setBase(start, ref), recipe.base, models);
    const next = isAdapter ? withModels(start, added, models) : addContributor(start, ref);
    return withOutput(recommended(next, added), recipe.base, models);
  });
}

/** LoRAs of image models become a LoRA until a model is there that they can be merged into. @param was base before */
function withOutput(recipe: RecipeState, was: string | null, models: readonly ModelInfo[]): RecipeState {
  const { base } = recipe;
  if (!isOfImages(recipe, models) || (base && base === was)) return recipe;
  const lora: RecipeState = { ...recipe, output: 'adapter' };
  if (base) return { ...lora, output: 'model' };
  return needsNoBase(lora, models) ? lora : recipe;
}

/** Gives added models the settings that the method recommends: mergekit's default density of 1 trims nothing. */
function recommended(recipe: RecipeState, added: readonly ModelInfo[]): RecipeState {
  return setRecommended(
    recipe,
    methodOf(recipe),
    added.map((m) => m.ref),
  );
}

/** Why a model cannot be added in that place, or null. */
export function whyNotAdd(recipe: RecipeState, model: ModelInfo, target: AddTarget): string | null {
  if (target === 'library') return 'It is open.';
  if (recipe.base === model.ref) return 'This is the base.';
  if (target === 'base') return model.kind === 'adapter' ? 'An adapter cannot be a base.' : null;
  return recipe.contributors.some((c) => c.ref === model.ref) ? 'Already in the recipe.' : null;
}

function remember(studio: Studio, opened: readonly ModelInfo[], asked: Pins = {}): void {
  const refs = new Set(opened.map((m) => m.ref));
  studio.store.setState((s) => {
    const models = [...s.models.filter((m) => !refs.has(m.ref)), ...opened];
    const pins = { ...s.hub.pins, ...asked };
    const known = (recipe: RecipeState) => withOpened(recipe, recipe.origins, models, pins);
    const recipe = known(s.recipe);
    const { past, future } = s.history;
    // A local folder may have changed since it was last opened, so earlier measurements of it are void.
    const again = opened.some((m) => m.origin === 'local') && s.models.some((m) => refs.has(m.ref));
    return {
      models,
      hub: { ...s.hub, pins },
      // the same recipe, better known: no step to undo
      ...(recipe === s.recipe
        ? {}
        : { recipe, history: { past: past.map(known), future: future.map(known) } }),
      ...(again ? { measure: { ...s.measure, cells: new Map(), found: null } } : {}),
    };
  });
}

/**
 * Files that were picked one by one, as a folder of their own: named by their one weight file where that is more specific. A GGUF
 * file beside other weights is a model by itself.
 */
function inFolder(files: LocalFile[], models: readonly ModelInfo[]): LocalFile[] {
  if (files.some(({ path }) => path.includes('/'))) return files;
  const own = files.filter(({ path }) => /\.gguf$/i.test(path) || /^sha256-[0-9a-f]{64}$/.test(path));
  const others = files.filter(({ path }) => path.endsWith('.safetensors'));
  const isMixed = own.length > 0 && others.length > 0;
  const weights = isMixed ? others : [...own, ...others];
  const stem = weights.length === 1 ? weights[0]!.path.replace(/\.\w+$|(?<=^sha256-.{12}).*$/, '') : '';
  const said = stem === '' || /^(adapter_)?model$/.test(stem) ? 'files' : stem;
  const folder = freeName(
    said,
    models.map((m) => m.ref),
  );
  return files.map((one) =>
    isMixed && own.includes(one) ? one : { path: `${folder}/${one.path}`, file: one.file },
  );
}

/** Names what is being opened, for as long as `open` lasts: what needs it waits. */
export async function whileOpening<T>(studio: Studio, what: string, open: () => Promise<T>): Promise<T> {
  studio.store.setState((s) => ({ opening: [...s.opening, what] }));
  try {
    return await open();
  } finally {
    studio.store.setState((s) => {
      const at = s.opening.indexOf(what);
      return { opening: s.opening.filter((_, i) => i !== at) };
    });
  }
}

// Opening an output as a model.

/** Opens an output as a model; returns its reference, or null after a failure, which is shown. */
export async function openOutput(
  studio: Studio,
  { kind, name }: Pick<SavedOutput, 'kind' | 'name'>,
  outputFiles: readonly string[],
): Promise<string | null> {
  try {
    const files =
      kind === 'folder'
        ? await filesInFolder(studio, name)
        : await Promise.all(
            outputFiles.map(async (file) => ({
              path: `${name}/${file}`,
              file: await studio.worker.outputFile(name, file),
            })),
          );
    const [opened] = await openLocal(studio, files);
    return opened?.ref ?? null;
  } catch (thrown) {
    notifyError(studio, thrown);
    return null;
  }
}

async function filesInFolder(studio: Studio, name: string) {
  const { folder } = studio.transient;
  return folder ? walkHandle(await folderIn(folder, name)) : [];
}
