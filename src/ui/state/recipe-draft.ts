import { AmalgamError } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import { bytesOf, piecesOf } from '../../platform';
import type { ModelInfo } from '../../reports/models';
import { type Draft, draft, type NamedRecipe, saveDraft, saveNamed } from '../local/database';
import { viewParameters, writeAddress } from './address';
import { buildRecipe } from './built-recipe';
import { openRecipe, recipeState } from './opened-recipe';
import { runOf, withSettingsOf } from './predicted-runs';
import { emptyRecipe, type RecipeState } from './recipe-state';
import { finishedRuns, NOW, type PredictedRun, predictedRuns, withRuns } from './runs';
import { askHub, editRecipe, methodOf, noticed, notify, notifyError, type Studio } from './studio';

/**
 * Saving the recipe: the draft is saved as it is edited and restored after a reload, with the runs beside it; others by
 * name or link.
 */

// Recipes in a link: their YAML, deflated, in the part of the address behind `#`, which browsers never send anywhere.

/** Longest link part read, and longest text inflated: no recipe comes near, and a bomb goes no further. */
const MAX_LINK = 100_000;
const MAX_TEXT = 1_000_000;
/** Most runs read. */
const MAX_RUNS = 16;

/** A run that is shown beside the recipe. */
interface LinkedRun {
  yaml: string;
  /** Given by a user. */
  name: string | null;
}

/** Content of a link besides the recipe. */
interface LinkExtras {
  runs: readonly LinkedRun[];
  view: URLSearchParams;
}

/** The address of this page with a recipe and the view of it. */
export async function recipeLink(yaml: string, page: string, extras?: LinkExtras): Promise<string> {
  const url = new URL(page);
  const said = new URLSearchParams({ recipe: await packed(yaml) });
  for (const { yaml: own, name } of extras?.runs ?? []) {
    said.append('run', `${await packed(own)}${name === null ? '' : `.${name}`}`);
  }
  for (const [name, value] of extras?.view ?? []) said.set(name, value);
  url.hash = said.toString();
  return url.href;
}

/** The YAML in an address, or undefined where there is none. @throws AmalgamError `LinkInvalid` */
export async function recipeInLink(hash: string): Promise<string | undefined> {
  const text = new URLSearchParams(hash.slice(1)).get('recipe');
  return text === null ? undefined : unpacked(text);
}

/** The runs in an address. @throws AmalgamError `LinkInvalid` */
async function runsInLink(hash: string): Promise<LinkedRun[]> {
  const all = new URLSearchParams(hash.slice(1)).getAll('run').slice(0, MAX_RUNS);
  return Promise.all(
    all.map(async (text) => {
      const end = text.indexOf('.');
      const yaml = await unpacked(end < 0 ? text : text.slice(0, end));
      return { yaml, name: end < 0 ? null : text.slice(end + 1) };
    }),
  );
}

async function packed(text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  return toBase64Url(await throughStream(bytes, new CompressionStream('deflate-raw'), MAX_LINK));
}

async function unpacked(text: string): Promise<string> {
  if (text.length > MAX_LINK) throw invalid();
  try {
    const inflated = await throughStream(
      fromBase64Url(text),
      new DecompressionStream('deflate-raw'),
      MAX_TEXT,
    );
    return new TextDecoder('utf-8', { fatal: true }).decode(inflated);
  } catch (cause) {
    throw invalid(cause);
  }
}

function invalid(cause?: unknown): AmalgamError {
  return new AmalgamError(
    'LinkInvalid',
    'The recipe in this link cannot be read: a part of the link is missing or was changed.',
    'Ask for the link again, or for the recipe as a YAML file.',
    { cause },
  );
}

async function throughStream(
  bytes: Uint8Array<ArrayBuffer>,
  stream: CompressionStream | DecompressionStream,
  limit: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const piece of piecesOf(new Blob([bytes]).stream().pipeThrough(stream))) {
    length += piece.byteLength;
    if (length > limit) throw new RangeError(`more than ${limit} bytes`);
    pieces.push(piece as Uint8Array<ArrayBuffer>);
  }
  return bytesOf(new Blob(pieces));
}

function toBase64Url(bytes: Uint8Array): string {
  const text = Array.from(bytes, (b) => String.fromCharCode(b)).join('');
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

/** A slider that moves is written three times a second, not at each of its steps. */
const BETWEEN_WRITES_MS = 300;

/**
 * Saves the recipe and its runs as they are edited, the first edit at once; returns a function that stops.
 * @param saved the recipe that needs no saving
 */
export function watchDraft(studio: Studio, saved = studio.store.getState().recipe): () => void {
  const now = (): Draft => {
    const state = studio.store.getState();
    return { recipe: state.recipe, runs: predictedRuns(state) };
  };
  let kept = { ...now(), recipe: saved };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const keep = () => {
    timer = undefined;
    const edited = now();
    if (edited.recipe === kept.recipe && edited.runs === kept.runs) return;
    kept = edited;
    saveDraft(edited);
    timer = setTimeout(keep, BETWEEN_WRITES_MS);
  };
  const look = () => {
    if (timer === undefined) keep();
  };
  const stop = studio.store.subscribe(look);
  look();
  addEventListener('pagehide', keep);
  return () => {
    clearTimeout(timer);
    removeEventListener('pagehide', keep);
    stop();
  };
}

function setPredicted(studio: Studio, others: readonly PredictedRun[]): void {
  studio.store.setState(({ runs }) => ({ runs: withRuns(runs, 'predicted', others) }));
}

/**
 * Brings a recipe at the start: the one in the page's address, else the one that was in work when the page was closed.
 * Never rejects.
 * @returns whether there was one
 */
export async function restoreRecipe(studio: Studio): Promise<boolean> {
  try {
    if (await openLink(studio)) return true;
    const kept = draft();
    if (!kept) return false;
    openSaved(studio, kept);
    setPredicted(studio, kept.runs);
    return true;
  } catch (thrown) {
    notifyError(studio, thrown);
    return false;
  }
}

/**
 * Opens the recipe and the runs in the page's address, where there are any, and takes them out of it.
 * @returns whether there was a recipe
 * @throws AmalgamError `LinkInvalid`
 */
export async function openLink(studio: Studio): Promise<boolean> {
  const { hash } = location;
  const said = new URLSearchParams(hash.slice(1));
  const merge = said.get('hub') ?? sharedAddress(location.search);
  if (merge !== null) {
    history.replaceState(null, '', location.pathname);
    writeAddress(studio.store.getState().view);
    const { remix } = await import('./remixed-recipe');
    studio.store.setState({ link: merge });
    try {
      await askHub(studio, 'link', (signal) => remix(studio, merge, signal));
    } finally {
      studio.store.setState({ link: null });
    }
    return true;
  }
  if (!said.has('recipe')) return false;
  writeAddress(studio.store.getState().view);
  const yaml = await recipeInLink(hash);
  const runs = await runsInLink(hash);
  if (yaml === undefined) return false;
  const { models } = studio.store.getState();
  const recipe = await parsed(yaml);
  const beside = await Promise.all(runs.map((run) => parsed(run.yaml)));
  openRecipe(studio, recipe);
  const named = beside.map((own, i) =>
    runOf(recipeState(own, models), models, `p${i + 1}`, runs[i]?.name ?? null),
  );
  setPredicted(studio, named);
  notify(
    studio,
    'note',
    'Opened the recipe in the link.',
    'Models on your own disk have to be opened by you.',
  );
  return true;
}

/** The address that was shared with the installed app; null where none was. Pure. */
export function sharedAddress(search: string): string | null {
  const said = new URLSearchParams(search);
  const words = ['url', 'text', 'title'].map((name) => said.get(name) ?? '').join(' ');
  return /https?:\/\/\S+/.exec(words)?.[0] ?? null;
}

/** Puts a saved recipe in place; its cards open the models. */
export function openSaved(studio: Studio, { recipe }: Pick<NamedRecipe, 'recipe'>): void {
  // a recipe saved by an older version lacks newer fields
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

/** A link to this page with the recipe, the shown runs and the view in it: no weights. A merge travels as its settings. */
async function shareLink(studio: Studio): Promise<string> {
  const state = studio.store.getState();
  const { recipe, models, view } = state;
  const { formatRecipe } = await import('../../formats/recipe-format');
  const shown = view.runs.flatMap((id) => {
    const planned = predictedRuns(state).find((run) => run.id === id);
    const past = finishedRuns(state).find((run) => run.id === id);
    const own = planned
      ? builtRecipe(withSettingsOf(recipe, planned.recipe, models), models)
      : past?.report.recipe;
    const name = planned?.name ?? past?.name ?? null;
    return id === NOW ? [null] : own && !own.stages && !own.slices ? [{ yaml: formatRecipe(own), name }] : [];
  });
  const runs = shown.filter((run) => run !== null);
  const ids = shown.map((run) => (run ? `p${runs.indexOf(run) + 1}` : NOW));
  return recipeLink(formatRecipe(builtRecipe(recipe, models)), location.href, {
    runs,
    view: viewParameters({ ...view, runs: ids.length > 0 ? ids : [NOW] }),
  });
}

function builtRecipe(recipe: RecipeState, models: readonly ModelInfo[]): Recipe {
  return buildRecipe(recipe, models, methodOf(recipe));
}

/** Copies that link, and confirms it. Never rejects. */
export async function copyShareLink(studio: Studio): Promise<void> {
  await noticed(studio, async () => {
    await navigator.clipboard.writeText(await shareLink(studio));
    notify(
      studio,
      'note',
      'The link is copied.',
      'It holds the recipe, its runs and what is shown: no weights, and nothing is sent.',
    );
  });
}

async function parsed(yaml: string): Promise<Recipe> {
  // YAML weighs as much as the rest of the recipe panel, and a first visit does without it
  const { parseRecipe } = await import('../../formats/recipe-yaml');
  const { recipe, problems } = parseRecipe(yaml);
  if (recipe) return recipe;
  const [first] = problems;
  throw new AmalgamError(
    'LinkInvalid',
    `The recipe in this link is not valid: ${first?.message ?? 'it is empty'}`,
    'Ask for the link again, or for the recipe as a YAML file.',
  );
}

// Undo and redo of the recipe. A slider on the move is one step.

/** Edits closer together than this, in milliseconds, are one step. */
const ONE_STEP_MS = 500;
/** Most saved steps; a recipe is a few hundred bytes. */
const MOST_STEPS = 200;

/** Remembers every edit of the recipe; returns a function that stops. */
export function watchHistory(studio: Studio, now: () => number = () => performance.now()): () => void {
  let last = Number.NEGATIVE_INFINITY;
  return studio.store.subscribe((after, before) => {
    // after an undo the next edit is a step of its own
    if (after.history !== before.history) last = Number.NEGATIVE_INFINITY;
    if (after.recipe === before.recipe || after.history !== before.history) return;
    const begun = before.recipe.base !== null || before.recipe.contributors.length > 0;
    const at = now();
    const sameStep = at - last < ONE_STEP_MS && after.history.past.length > 0;
    last = at;
    if (!begun) return; // the first recipe there is cannot be undone into nothing
    if (sameStep && after.history.future.length === 0) return; // it is remembered as it is
    const past = sameStep ? after.history.past : [...after.history.past, before.recipe].slice(-MOST_STEPS);
    studio.store.setState({ history: { past, future: [] } });
    last = at;
  });
}

export function undo(studio: Studio): void {
  studio.store.setState(({ recipe, history: { past, future } }) => {
    const before = past.at(-1);
    return before
      ? { recipe: before, history: { past: past.slice(0, -1), future: [...future, recipe] } }
      : {};
  });
}

export function redo(studio: Studio): void {
  studio.store.setState(({ recipe, history: { past, future } }) => {
    const next = future.at(-1);
    return next ? { recipe: next, history: { past: [...past, recipe], future: future.slice(0, -1) } } : {};
  });
}
