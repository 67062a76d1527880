/** Keeping the recipe: the one in work is saved as it is edited and comes back after a reload; others by name or link. */
import { AmalgamError } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import { recipeRepositories } from '../../formats/recipe-models';
import { recipeInLink, recipeLink } from '../local/recipe-link';
import {
  draft,
  type KeptRecipe,
  keepDraft,
  keptRecipe,
  type NamedRecipe,
  saveNamed,
} from '../local/recipe-shelf';
import { openHub } from './models';
import { buildRecipe } from './recipe-build';
import { emptyRecipe } from './recipe-facts';
import { openRecipe } from './recipe-open';
import { editRecipe, methodOf, notify, notifyError, type Studio } from './studio';

/** Pause after an edit before it is kept, in milliseconds. */
const PAUSE_MS = 400;

/** Keeps the recipe as it is edited; returns a function that stops. */
export function watchDraft(studio: Studio): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const unsubscribe = studio.store.subscribe((now, before) => {
    if (now.recipe === before.recipe) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      const { recipe, models } = studio.store.getState();
      // a browser that keeps nothing: the recipe lives as long as the tab
      keepDraft(keptRecipe(recipe, models, Date.now())).catch(() => {});
    }, PAUSE_MS);
  });
  return () => {
    clearTimeout(timer);
    unsubscribe();
  };
}

/**
 * Brings a recipe at the start: the one in the page's address, else the one that was in work when the page was closed.
 * Call it once the sample is open. Never rejects.
 */
export async function restoreRecipe(studio: Studio): Promise<void> {
  try {
    const shared = await recipeInLink(location.hash);
    if (shared !== undefined) {
      history.replaceState(null, '', `${location.pathname}${location.search}`);
      await openShared(studio, shared);
      return;
    }
    const kept = await draft().catch(() => undefined);
    if (kept && kept.recipe.contributors.length > 0) await openKept(studio, kept);
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

/** Puts a kept recipe in place and opens its models from the Hub again. */
export async function openKept(studio: Studio, { recipe, hub }: KeptRecipe): Promise<void> {
  // one that an older version kept lacks what came since
  editRecipe(studio, () => ({ ...emptyRecipe, ...recipe }));
  await openMissing(studio, hub);
}

/** Saves the recipe under a name, on this browser. */
export async function saveRecipe(studio: Studio, name: string): Promise<NamedRecipe> {
  const { recipe, models } = studio.store.getState();
  const named = { ...keptRecipe(recipe, models, Date.now()), name };
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
  notify(
    studio,
    'note',
    'Opened the recipe in the link.',
    'Models on your own disk have to be added by you.',
  );
  await openModelsOf(studio, recipe);
}

/** Opens the models of the Hub that a recipe names and that are not open yet. Never rejects. */
export async function openModelsOf(studio: Studio, recipe: Recipe): Promise<void> {
  const known = new Set(studio.store.getState().models.map((m) => m.ref));
  await openMissing(
    studio,
    recipeRepositories(recipe).filter((ref) => !known.has(ref) && /^[\w.-]+\/[\w.-]+(@[\w.-]+)?$/.test(ref)),
  );
}

/** Opens models of the Hub that are not open; what cannot be opened is said, and the plan says it too. */
async function openMissing(studio: Studio, refs: readonly string[]): Promise<void> {
  const open = new Set(studio.store.getState().models.map((m) => m.ref));
  for (const ref of refs) {
    if (open.has(ref)) continue;
    try {
      await openHub(studio, ref);
    } catch (thrown) {
      notifyError(studio, thrown);
    }
  }
}
