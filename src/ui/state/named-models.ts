/**
 * Opens the models that the recipe names: the sample's and those of the Hub at a commit by themselves, folders of this
 * computer where the browser still gives access to them. Whatever else a recipe names waits for the user: a name alone
 * may be that of a folder, and no hub is asked for it.
 */

import { AmalgamError, type ErrorReport, errorReport } from '../../errors';
import { isRepoId } from '../../formats/hub-id';
import { displayName } from '../../formats/names';
import { parseModelRef } from '../../formats/recipe';
import { isFolderSaved, openSavedFolder } from '../local/database';
import type { PickedFiles } from '../local/local-files';
import { shortName } from './built-recipe';
import { isPinnedName, namedModels } from './model-origins';
import { openHub, openLocal, openSample } from './models';
import type { RecipeState } from './recipe-state';
import { askHub, neverMind, notifyError, type Studio, type StudioState, type Unopened } from './studio';

/** Opens the models that the recipe names, now and after every change; returns a function that stops. */
export function watchNamedModels(studio: Studio): () => void {
  openNamed(studio);
  return studio.store.subscribe((now, before) => {
    if (now.recipe !== before.recipe || now.models !== before.models) openNamed(studio);
  });
}

/** Names of the models that the merge needs and that are not open. */
export function missingModels({ recipe, models }: Pick<StudioState, 'recipe' | 'models'>): string[] {
  const open = new Set(models.map((m) => m.ref));
  return namedModels(recipe, false).filter((name) => !open.has(name));
}

/** Whether the recipe names models, and all of them are open. */
export function isRecipeOpen(state: Pick<StudioState, 'recipe' | 'models'>): boolean {
  return namedModels(state.recipe, false).length > 0 && missingModels(state).length === 0;
}

/** Why the recipe's models cannot be used yet, or null. */
export function whyNotOpen(state: StudioState): { why: string; remedy?: string; wait: boolean } | null {
  const missing = missingModels(state);
  const [first] = missing;
  if (first === undefined) return null;
  const isOpening = (name: string) => (state.unopened[name]?.state ?? 'opening') === 'opening';
  const stuck = missing.find((name) => !isOpening(name));
  if (stuck === undefined) return { why: `Opening ${shortName(first)}…`, wait: true };
  const stuckToo = missing.filter((name) => !isOpening(name)).length - 1;
  const why =
    stuckToo === 0
      ? `${shortName(stuck)} is not open.`
      : `${shortName(stuck)} and ${stuckToo} more are not open.`;
  return {
    why,
    remedy: `Open ${stuckToo === 0 ? 'its folder, or get it' : 'their folders, or get them'} from the Hub.`,
    wait: false,
  };
}

/** Opens a model of the Hub that the recipe names. Never rejects: its card shows the error. */
export async function openNamedHub(studio: Studio, name: string): Promise<void> {
  await attempt(studio, name, (signal) => openHub(studio, name, signal));
}

/** Opens another model of the Hub, which takes the place of a name in the recipe. Never rejects. */
export async function openInstead(studio: Studio, name: string, id: string): Promise<void> {
  await attempt(studio, name, (signal) => openHub(studio, id, signal, name));
}

/** Names that wait for a word and can be repositories of the Hub. */
export function hubModels({ unopened }: Pick<StudioState, 'unopened'>): string[] {
  return Object.entries(unopened).flatMap(([name, { state }]) =>
    state === 'unknown' && isRepoId(parseModelRef(name).model.path) ? [name] : [],
  );
}

/** Opens all of them. Never rejects: their cards show the errors. */
export async function openAllOfHub(studio: Studio): Promise<void> {
  await Promise.all(hubModels(studio.store.getState()).map((name) => openNamedHub(studio, name)));
}

/** Asks for access to the saved folder of a model and opens it. Call it from a click. Never rejects. */
export async function reopenFolder(studio: Studio, name: string, ask = true): Promise<void> {
  let picked: PickedFiles | null = null;
  await attempt(studio, name, async () => {
    picked = await openSavedFolder(name, ask);
    if (picked) await openLocal(studio, picked.files, picked.handles);
  });
  const { unopened } = studio.store.getState();
  if (!picked && unopened[name]?.state === 'opening') note(studio, name, { state: 'closed', saved: true });
}

/** Names of the models whose saved folders wait for a click. */
export function closedFolders({ unopened }: Pick<StudioState, 'unopened'>): string[] {
  return Object.entries(unopened).flatMap(([name, found]) =>
    found.state === 'closed' && found.saved ? [name] : [],
  );
}

/** Opens every saved folder that waits, one after the other. Call it from a click. Never rejects. */
export async function reopenFolders(studio: Studio): Promise<void> {
  for (const name of closedFolders(studio.store.getState())) {
    // one folder may hold several models
    if (!closedFolders(studio.store.getState()).includes(name)) continue;
    // a browser refuses to ask long after the click; the model's card asks then
    await reopenFolder(studio, name, navigator.userActivation?.isActive ?? true);
  }
}

/** Opens a folder as the model that the recipe names so. Never rejects. */
export async function openFolderAs(studio: Studio, name: string, picked: PickedFiles): Promise<void> {
  const { files, handles } = as(name, picked);
  await attempt(studio, name, () => openLocal(studio, files, handles));
}

/** Picked files under the recipe's path for them: a folder `kitchen` may be its `loras/kitchen`. */
function as(name: string, picked: PickedFiles): PickedFiles {
  if (picked.files.some(({ path }) => path.startsWith(`${name}/`))) return picked;
  const named = (path: string) => `${name}${path.includes('/') ? path.slice(path.indexOf('/')) : `/${path}`}`;
  return {
    files: picked.files.map(({ path, file }) => ({ path: named(path), file })),
    handles: picked.handles.map(({ handle }) => ({ path: name, handle })),
  };
}

/** Opens the sample family; where that fails, the cards of its models say so. Never rejects. */
export async function openSampleFamily(studio: Studio, asRecipe = false): Promise<void> {
  try {
    await openSample(studio, asRecipe);
    const { recipe } = studio.store.getState();
    for (const name of namedModels(recipe, true))
      if (isSample(recipe, name) && isUnopened(studio, name)) note(studio, name, noSample(name));
  } catch (thrown) {
    const { recipe, engine } = studio.store.getState();
    const error = errorReport(thrown);
    const named = namedModels(recipe, true).filter((name) => isSample(recipe, name));
    for (const name of named) if (isUnopened(studio, name)) note(studio, name, { state: 'failed', error });
    // a dead engine has shown its own error
    if (named.length === 0 && engine.status !== 'failed') notifyError(studio, thrown);
  }
}

/** Tries once more what failed. */
export function openAgain(studio: Studio, name: string): void {
  if (isSample(studio.store.getState().recipe, name)) void openSampleFamily(studio);
  else void openNamedHub(studio, name);
}

/** Repeats requests that the hub refused, after a sign-in, a new token or another hub. */
export function retryRefused(studio: Studio): void {
  retry(studio, ['Unauthorized', 'Gated', 'NotFound']);
}

/** Asks again for what could not be reached. */
export function retryUnreached(studio: Studio): void {
  retry(studio, ['Offline', 'HubError', 'RateLimited']);
}

/** Tries the models again that failed with these codes, and removes the notices about that. */
function retry(studio: Studio, codes: readonly string[]): void {
  const { unopened } = studio.store.getState();
  studio.store.setState((s) => ({ notices: s.notices.filter((n) => !codes.includes(n.code)) }));
  for (const [name, found] of Object.entries(unopened)) {
    if (found.state === 'failed' && codes.includes(found.error.code)) openAgain(studio, name);
  }
}

function isSample({ origins }: RecipeState, name: string): boolean {
  return (origins[name]?.kind ?? (name.startsWith('samples/') ? 'sample' : undefined)) === 'sample';
}

/** A name that the family does not have, which is open whole or not at all. */
function noSample(name: string): Unopened {
  const message = `The samples have no model ${displayName(name)}.`;
  const error = errorReport(
    new AmalgamError('NotFound', message, 'Correct its name, or take another model.'),
  );
  return { state: 'failed', error };
}

function openNamed(studio: Studio): void {
  const { recipe, models, unopened } = studio.store.getState();
  const open = new Set(models.map((m) => m.ref));
  const named = namedModels(recipe, true).filter((name) => !open.has(name));
  const stale = Object.keys(unopened).filter((name) => !named.includes(name));
  if (stale.length > 0) {
    const left = Object.entries(unopened).filter(([name]) => !stale.includes(name));
    studio.store.setState({ unopened: Object.fromEntries(left) });
    for (const name of stale) neverMind(studio, opening(name));
  }
  for (const name of named) {
    if (unopened[name]) continue;
    const origin = recipe.origins[name]?.kind;
    if (origin === 'hub' || (origin === undefined && isPinnedName(name))) void openNamedHub(studio, name);
    else if (isSample(recipe, name))
      note(
        studio,
        name,
        models.some(({ ref }) => isSample(recipe, ref)) ? noSample(name) : { state: 'opening' },
      );
    else
      void openGranted(
        studio,
        name,
        origin === 'local' ? { state: 'closed', saved: false } : { state: 'unknown' },
      );
  }
}

/** Opens a folder that the browser still gives access to; else it is `otherwise`. */
async function openGranted(studio: Studio, name: string, otherwise: Unopened): Promise<void> {
  note(studio, name, otherwise);
  // no saved folders without storage
  if (await isFolderSaved(name).catch(() => false)) await reopenFolder(studio, name, false);
}

/** Opens what the recipe names so; the signal fires when the recipe does so no longer, or it is opened anew. */
async function attempt(
  studio: Studio,
  name: string,
  open: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  note(studio, name, { state: 'opening' });
  await askHub(studio, opening(name), (signal) =>
    open(signal).catch((thrown: unknown) => signal.aborted || noteFailed(studio, name, thrown)),
  );
}

const opening = (name: string) => `model ${name}`;

/** Says on the card of a model why it is not open. */
export function noteFailed(studio: Studio, name: string, thrown: unknown): void {
  if (isUnopened(studio, name)) note(studio, name, { state: 'failed', error: said(name, thrown) });
}

function said(name: string, thrown: unknown): ErrorReport {
  if (thrown instanceof DOMException && thrown.name === 'NotFoundError') {
    return {
      code: 'NotFound',
      message: `The folder of ${name} was moved or deleted.`,
      hint: 'Open it where it is now.',
    };
  }
  return errorReport(thrown);
}

function isUnopened(studio: Studio, name: string): boolean {
  const { recipe, models } = studio.store.getState();
  return namedModels(recipe, true).includes(name) && !models.some((m) => m.ref === name);
}

function note(studio: Studio, name: string, unopened: Unopened): void {
  studio.store.setState((s) => ({ unopened: { ...s.unopened, [name]: unopened } }));
}
