/** Opening models and putting them into the recipe. */
import type { LocalFile, ModelFacts } from '../../reports/models';
import { keepFolders } from '../local/folder-handles';
import type { PickedFiles, PickedHandle } from '../local/local-files';
import type { AddTarget } from './facts';
import { type Pins, withOpened } from './model-origins';
import {
  addContributor,
  emptyRecipe,
  type RecipeFacts,
  setBase,
  setContributorParameter,
} from './recipe-facts';
import { editRecipe, notify, notifyError, type Studio } from './studio';

/**
 * Opens the sample family and, on an empty recipe, makes the first merge of it: TIES 0.2 of everything. Rejects with what
 * the engine says.
 * @param asRecipe whether an empty recipe is to be filled
 */
export async function openSample(studio: Studio, asRecipe: boolean): Promise<void> {
  const opened = await whileOpening(studio, 'the sample', () => studio.engine.openSample());
  remember(studio, opened);
  if (!asRecipe) return;
  editRecipe(studio, (recipe) =>
    recipe.base === null && recipe.contributors.length === 0 ? sampleRecipe(opened) : recipe,
  );
}

/** TIES with density 0.2 of the sample's base and everything made from it. Pure. */
export function sampleRecipe(sample: readonly ModelFacts[]): RecipeFacts {
  const base = sample.find((m) => m.kind === 'checkpoint' && /(^|\/)base$/.test(m.ref));
  const others = sample.filter((m) => m !== base);
  let recipe = base ? setBase(emptyRecipe, base.ref) : emptyRecipe;
  for (const { ref } of others) {
    recipe = setContributorParameter(addContributor(recipe, ref), ref, 'density', 0.2);
  }
  return recipe;
}

/**
 * Opens local files and returns the models found in them. Rejects with what the engine says.
 * @param handles of the folders, to be opened again after a reload
 */
export async function openLocal(
  studio: Studio,
  files: LocalFile[],
  handles: readonly PickedHandle[] = [],
): Promise<ModelFacts[]> {
  const folder = files[0]?.path.split('/')[0] ?? 'files';
  const opened = await whileOpening(studio, folder, () => studio.engine.openLocal(files));
  remember(studio, opened);
  const names = opened.map((m) => m.ref);
  // a browser that keeps nothing: the folder is chosen again
  keepFolders(handles, names).catch(() => {});
  return opened;
}

/** Opens a Hub model by id (with revision) or URL. Rejects with what the engine says. */
export async function openHub(studio: Studio, idOrUrl: string): Promise<ModelFacts> {
  const opened = await whileOpening(studio, idOrUrl, () => studio.engine.openHub(idOrUrl));
  remember(studio, [opened], { [idOrUrl]: opened.ref });
  return opened;
}

/** Opens what was dropped on the page and puts it where it belongs: the first checkpoint becomes a missing base. */
export async function addDropped(studio: Studio, { files, handles }: PickedFiles): Promise<void> {
  try {
    const opened = await openLocal(studio, files, handles);
    for (const model of opened) {
      const { base } = studio.store.getState().recipe;
      takeModel(studio, model.ref, base === null && model.kind === 'checkpoint' ? 'base' : 'contributor');
    }
    if (opened.length === 0) {
      notify(
        studio,
        'error',
        'No model was found in what you dropped.',
        'Drop the folder that holds config.json or adapter_config.json beside the .safetensors files.',
      );
    } else {
      const names = opened.map((m) => m.title).join(', ');
      notify(studio, 'note', `Opened ${names}.`, 'Read in place; nothing is copied or uploaded.');
    }
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

/** Puts an opened model into the recipe, where it is meant for it. */
export function takeModel(studio: Studio, ref: string, target: AddTarget): void {
  if (target === 'shelf') return;
  editRecipe(studio, (recipe) => (target === 'base' ? setBase(recipe, ref) : addContributor(recipe, ref)));
}

/** Why a model cannot be added in that place, or null. */
export function whyNotAdd(recipe: RecipeFacts, model: ModelFacts, target: AddTarget): string | null {
  if (target === 'shelf') return 'It is open.';
  if (recipe.base === model.ref) return 'This is the base.';
  if (target === 'base') return model.kind === 'adapter' ? 'An adapter cannot be a base.' : null;
  return recipe.contributors.some((c) => c.ref === model.ref) ? 'Already in the recipe.' : null;
}

function remember(studio: Studio, opened: readonly ModelFacts[], asked: Pins = {}): void {
  const refs = new Set(opened.map((m) => m.ref));
  studio.store.setState((s) => {
    const models = [...s.models.filter((m) => !refs.has(m.ref)), ...opened];
    const pins = { ...s.hub.pins, ...asked };
    const known = (recipe: RecipeFacts) => withOpened(recipe, recipe.origins, models, pins);
    const recipe = known(s.recipe);
    const { past, future } = s.history;
    // A local folder may have changed since it was last opened: what was measured then says nothing about it now.
    const again = opened.some((m) => m.origin === 'local') && s.models.some((m) => refs.has(m.ref));
    return {
      models,
      hub: { ...s.hub, pins },
      // the same recipe, better known: no step to undo
      ...(recipe === s.recipe
        ? {}
        : { recipe, history: { past: past.map(known), future: future.map(known) } }),
      ...(again ? { evaluation: { ...s.evaluation, outcomes: new Map() } } : {}),
    };
  });
}

async function whileOpening<T>(studio: Studio, what: string, open: () => Promise<T>): Promise<T> {
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
