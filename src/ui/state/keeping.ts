/** Keeping the recipe: the one in work is saved as it is edited and comes back after a reload; others by name or link. */
import { AmalgamError } from '../../errors';
import { recipeInLink, recipeLink } from '../local/recipe-link';
import { draft, type KeptRecipe, keepDraft, type NamedRecipe, saveNamed } from '../local/recipe-shelf';
import { buildRecipe } from './recipe-build';
import { emptyRecipe } from './recipe-facts';
import { openRecipe } from './recipe-open';
import { editRecipe, methodOf, notify, notifyError, type Studio } from './studio';

/** Keeps the recipe as it is edited, one write at a time; returns a function that stops. */
export function watchDraft(studio: Studio): () => void {
  let writing = false;
  let kept = studio.store.getState().recipe;
  const keep = async () => {
    writing = true;
    while (kept !== studio.store.getState().recipe) {
      kept = studio.store.getState().recipe;
      // a browser that keeps nothing: the recipe lives as long as the tab
      await keepDraft({ recipe: kept, at: Date.now() }).catch(() => {});
    }
    writing = false;
  };
  return studio.store.subscribe(({ recipe }) => {
    if (recipe !== kept && !writing) void keep();
  });
}

/**
 * Brings a recipe at the start: the one in the page's address, else the one that was in work when the page was closed.
 * Never rejects.
 * @returns whether there was one
 */
export async function restoreRecipe(studio: Studio): Promise<boolean> {
  try {
    const shared = await recipeInLink(location.hash);
    if (shared !== undefined) {
      history.replaceState(null, '', `${location.pathname}${location.search}`);
      await openShared(studio, shared);
      return true;
    }
    const kept = await draft().catch(() => undefined);
    if (!kept) return false;
    openKept(studio, kept);
    return true;
  } catch (thrown) {
    notifyError(studio, thrown);
    return false;
  }
}

/** Puts a kept recipe in place; its models are opened as its cards show. */
export function openKept(studio: Studio, { recipe }: KeptRecipe): void {
  // one that an older version kept lacks what came since
  editRecipe(studio, () => ({ ...emptyRecipe, ...recipe }));
}

/** Saves the recipe under a name, on this browser. */
export async function saveRecipe(studio: Studio, name: string): Promise<NamedRecipe> {
  const named = { recipe: studio.store.getState().recipe, at: Date.now(), name };
  try {
    await saveNamed(named);
  } catch (cause) {
    throw new AmalgamError(
      'StorageUnavailable',
      'This browser keeps nothing for this page, so the recipe was not saved.',
      'Copy its YAML or a link instead, or leave the private window.',
      { cause },
    );
  }
  return named;
}

/** A link to this page with the recipe in it: the recipe alone, no weights. */
export async function shareLink(studio: Studio): Promise<string> {
  const { recipe, models } = studio.store.getState();
  const { formatRecipe } = await recipeYaml();
  return recipeLink(formatRecipe(buildRecipe(recipe, models, methodOf(recipe))), location.href);
}

/** Copies that link, and says so. Never rejects. */
export async function copyShareLink(studio: Studio): Promise<void> {
  try {
    await navigator.clipboard.writeText(await shareLink(studio));
    notify(
      studio,
      'note',
      'The link is copied.',
      'It holds the recipe alone: no weights, and nothing is sent.',
    );
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

/** YAML weighs as much as the rest of the recipe panel, and a first visit does without it. */
function recipeYaml() {
  return import('../../formats/recipe-yaml');
}

async function openShared(studio: Studio, yaml: string): Promise<void> {
  const { parseRecipe } = await recipeYaml();
  const { recipe, problems } = parseRecipe(yaml);
  if (!recipe) {
    const [first] = problems;
    throw new AmalgamError(
      'LinkInvalid',
      `The recipe in this link is not valid: ${first?.message ?? 'it is empty'}`,
      'Ask for the link again, or for the recipe as a YAML file.',
    );
  }
  openRecipe(studio, recipe);
  notify(studio, 'note', 'Opened the recipe in the link.', 'Models on your own disk are opened by you.');
}
