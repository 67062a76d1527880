import { isUtf8 } from 'node:buffer';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { AmalgamError } from '../errors';
import { DEFAULT_HUB_URL } from '../formats/hub-id';
import { displayName } from '../formats/names';
import { copyOf, type Recipe } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import { recipeModels, recipeRepositories, renameRepositories } from '../formats/recipe-models';
import { parseRecipe } from '../formats/recipe-yaml';
import type { RecipeProblem } from '../formats/recipe-yaml-nodes';
import { defaultCache } from '../host/node/platform';
import type { BackendChoice } from '../reports/backend';
import type { RunTarget } from '../reports/evaluate';
import type { PlanReport } from '../reports/plan';
import { type HubWait, waitWords } from '../reports/push';
import type { WorkerCalls } from '../worker/calls';
import { isHubAddress, type Place, usage } from './arguments';
import { readGiven } from './input-files';
import { hubCacheFolder, lookUpModels, orNeighbor, publishedNames, requireModelNames } from './model-lookup';
import type { CommandWorker } from './node-worker';
import { problemLines, STRICT } from './print';
import { publishedTexts, readCalibrationTexts, renameTexts } from './recipe-texts';

/** A recipe with its models opened in a session of the worker: everything `plan` and `merge` have in common. */
interface Job {
  /** Hub models are pinned to the commit they were opened at. */
  recipe: Recipe;
  worker: CommandWorker;
  calls: WorkerCalls;
}

/** Options that every verb has. */
export interface Where {
  hub?: string;
  /** Folder of what is downloaded. */
  cache?: string;
  engine?: BackendChoice;
}

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The hub to talk to and the token for it: those of the command line, else of the environment, by the names that
 * huggingface_hub reads. @throws Usage for an HF_ENDPOINT that is no http address
 */
export function hubAddress(hub: string | undefined): { url?: string; token?: string; tokenFrom: string } {
  const [endpoint, token] = [process.env.HF_ENDPOINT, process.env.HF_TOKEN].map((text) => text?.trim());
  const url = (hub ?? (endpoint || undefined))?.replace(/\/+$/, '');
  if (url !== undefined && !isHubAddress(url)) {
    throw usage(`HF_ENDPOINT is ${url}; it is an address such as ${DEFAULT_HUB_URL}.`);
  }
  return { ...(url === undefined ? {} : { url }), ...(token ? { token } : {}), tokenFrom: 'HF_TOKEN' };
}

/**
 * Reads a recipe file.
 * @throws RecipeInvalid with the line and column of every mistake, NotFound
 */
export async function readRecipe(file: string): Promise<Recipe> {
  const bytes = await readGiven(file, file, 'Give the path of a recipe file.');
  if (!isUtf8(bytes)) {
    throw new AmalgamError('RecipeInvalid', `${file} is not UTF-8 text.`, 'Save it as UTF-8.');
  }
  return requireRecipe(file, parseRecipe(new TextDecoder().decode(bytes)));
}

/** What was read of a recipe. @throws RecipeInvalid with the line and column of every mistake */
export function requireRecipe<T>(
  name: string,
  { recipe, problems }: { recipe?: T | undefined; problems: readonly RecipeProblem[] },
): T {
  if (recipe && problems.length === 0) return recipe;
  const lines = problems.map(({ line, column, message }) => `${name}:${line}:${column}: ${message}`);
  const hints = [...new Set(problems.map(({ hint }) => hint))];
  throw new AmalgamError('RecipeInvalid', lines.join('\n'), hints.join('\n'));
}

/**
 * The recipe of a merged model with its models where they are: the recipe it was merged by knows, its own metadata hold
 * names only. With it the names that were published, by those places: the same have to be published again; and the first line
 * in which that recipe is another one than was merged.
 * @param recipeFile that recipe
 * @throws NotFound, RecipeInvalid
 */
export async function locateModels(
  merged: Recipe,
  recipeFile: string,
  workingFolder: string,
): Promise<{ recipe: Recipe; published: ReadonlyMap<string, string>; differs: string | undefined }> {
  const recipe = await readRecipe(recipeFile);
  const places = [dirname(recipeFile), workingFolder];
  const found = await lookUpModels(recipeRepositories(recipe), places, hubCacheFolder());
  const names = publishedNames(
    found,
    recipe.stages?.map((stage) => stage.name),
  );
  const folders = found.flatMap(({ name, folder }) =>
    folder === undefined ? [] : [[names.get(name)!, folder] as const],
  );
  const texts = [...publishedTexts(recipe)].map(
    ([name, short]) => [short, resolve(places[0]!, name)] as const,
  );
  return {
    recipe: renameTexts(renameRepositories(merged, new Map(folders)), new Map(texts)),
    published: new Map([...folders, ...texts].map(([name, place]) => [place, name])),
    differs: firstDifference(renameTexts(renameRepositories(recipe, names), publishedTexts(recipe)), merged),
  };
}

/** The first line of a recipe that another one does not have, or that it lacks; commits of the Hub count for nothing. */
function firstDifference(recipe: Recipe, other: Recipe): string | undefined {
  const [own, others] = [recipe, other].map((of) => {
    const names = recipeRepositories(of).map((name) => [name, name.replace(/@.*$/, '')] as const);
    return formatRecipe(renameRepositories(of, new Map(names))).split('\n');
  }) as [string[], string[]];
  const at = own.findIndex((line, i) => line !== others[i]);
  return at < 0 ? others[own.length] : own[at]!.trim() || others[at];
}

/**
 * Opens the recipe's models.
 *
 * @param recipeFile where the recipe came from: models are looked up beside it
 * @param place its folder is where they are looked up next; its `undo` gets what has to be closed at the end
 * @param wanted the repositories to open, by default all that the recipe names
 * @param known names to publish for some of them and for texts; by default made from the recipe's
 */
export async function openJob(
  recipe: Recipe,
  recipeFile: string,
  { workingFolder, undo, say }: Place,
  { hub, cache, engine }: Where,
  wanted: (recipe: Recipe) => string[] = recipeRepositories,
  known: ReadonlyMap<string, string> = new Map(),
): Promise<Job> {
  const address = hubAddress(hub);
  const places = [resolve(workingFolder, dirname(recipeFile)), workingFolder];
  // what another hub calls by that name is another model
  const hubCache = hub === undefined ? hubCacheFolder() : undefined;
  await requireModelNames(recipeModels(recipe), places);
  const found = await lookUpModels(wanted(recipe), places, hubCache, address.url);
  const texts = await readCalibrationTexts(recipe, places);
  const made = publishedNames(
    found,
    recipe.stages?.map((stage) => stage.name),
  );
  const names = new Map([...made].map(([name, short]) => [name, known.get(name) ?? short]));
  const textNames = new Map(
    [...publishedTexts(recipe)].map(([name, short]) => [name, known.get(name) ?? short]),
  );
  const published = renameTexts(renameRepositories(recipe, names), textNames);
  const worker = await openNode({ workingFolder, say }, { cache, engine });
  undo.push(() => worker.close());
  const { calls } = worker;
  const models = [];
  for (const { name, folder, snapshot } of found) {
    if (folder === undefined) {
      models.push({ name: names.get(name) ?? name });
      continue;
    }
    if (snapshot)
      say(`${displayName(name)}: commit ${snapshot.commit.slice(0, 8)} from the Hugging Face cache.`);
    for (const path of await worker.listModel(folder, snapshot)) {
      say(`warning: ${displayName(path)} in ${displayName(name)} is a broken link and is left out.`);
    }
    models.push({ name: names.get(name)!, folder });
  }

  await calls.setHub(address);
  for (const { name, text } of texts) await calls.addCalibrationText(textNames.get(name) ?? name, text);
  const pinned = new Map<string, string>();
  for (const { name, folder } of models) {
    const onHub = () =>
      calls.openHub(name).catch(async (thrown: unknown) => {
        throw await withPlaces(thrown, name, places, address.url);
      });
    pinned.set(name, (await (folder === undefined ? onHub() : calls.openDisk(name, folder))).ref);
  }
  return { recipe: renameRepositories(published, pinned), worker, calls };
}

/** Asks the Hub in a session of its own, which ends with the answer. */
export async function askHub<T>(
  place: Place,
  { hub, cache }: Where,
  ask: (calls: WorkerCalls) => Promise<T>,
): Promise<T> {
  const worker = await openNode(place, { cache });
  try {
    await worker.calls.setHub(hubAddress(hub));
    return await ask(worker.calls);
  } finally {
    await worker.close();
  }
}

/** The plan of a job, its problems told. @param more further lines about it */
export async function plannedJob(
  { calls, recipe }: Job,
  { say }: Place,
  more: (plan: PlanReport) => readonly string[] = () => [],
): Promise<PlanReport> {
  const plan = await calls.plan(recipe, true);
  for (const line of [...problemLines(plan.problems), ...more(plan)]) say(line);
  return plan;
}

/**
 * Opens models by themselves, looked up and pinned like those of a merge.
 * @param beside a file that names them; default: the command does
 * @returns also their references, in that order
 */
export async function openNamed<const N extends readonly string[]>(
  names: N,
  place: Place,
  where: Where,
  beside = 'models',
): Promise<Omit<Job, 'recipe'> & { refs: { [K in keyof N]: string } }> {
  const opened = await openJob(copyOf(...names), resolve(place.workingFolder, beside), place, where);
  const { recipe, ...job } = opened;
  return { ...job, refs: recipe.models!.map(({ model }) => model) as { [K in keyof N]: string } };
}

/** Whether the recipe fits its models and, if `strict`, has no name without effect. */
export function isAccepted({ clean, problems }: PlanReport, strict: boolean): boolean {
  return clean && !(strict && problems.some(({ code }) => STRICT.includes(code)));
}

/** A recipe where the name is a recipe file, else the recipe that copies a model; and the file its models are beside. */
export async function readSubject(name: string, workingFolder: string) {
  const file = resolve(workingFolder, name);
  if (/\.ya?ml$/i.test(name)) return { recipe: await readRecipe(file), file, isRecipe: true };
  return { recipe: copyOf(name), file: resolve(workingFolder, 'model'), isRecipe: false };
}

/** The worker's session in this process; what a hub is waited for is said. */
export async function openNode(
  { workingFolder, say }: Pick<Place, 'workingFolder' | 'say'>,
  { cache, engine }: { [K in 'cache' | 'engine']?: Where[K] | undefined } = {},
): Promise<CommandWorker> {
  const { openNodeEngine } = await import('./node-worker');
  const folder = cache === undefined ? defaultCache() : resolve(workingFolder, cache);
  const worker = await openNodeEngine(folder, join(PROJECT, 'public', 'samples'), engine);
  const told = new Set<HubWait>();
  void worker.calls.hubWaits((waits) => {
    for (const wait of waits.filter((one) => !told.has(one))) {
      told.add(wait);
      const { token, tokenFrom } = hubAddress(undefined);
      const hasToken = token !== undefined;
      const { title, hint } = waitWords(wait, { now: Date.now(), hasToken, tokenFrom });
      say(`${title}. ${hint}`);
    }
  });
  return worker;
}

/** A name that is no folder was looked for on the Hub; when it is not there either, the error names both places. */
async function withPlaces(thrown: unknown, name: string, places: string[], hub?: string) {
  if (!(thrown instanceof AmalgamError)) return thrown;
  // without a token a hub says the same of what is missing and of what is private
  if (!['NotFound', 'Offline', 'Unauthorized'].includes(thrown.code)) return thrown;
  const looked = [...new Set(places)].map((place) => displayName(place)).join(' and ');
  return new AmalgamError(
    thrown.code,
    thrown.message,
    `${thrown.hint} ${displayName(name)}: no folder of that name in ${looked}, so it was looked up on ${hub ?? DEFAULT_HUB_URL}${await orNeighbor(name, places)}`,
    { cause: thrown },
  );
}

// Targets of `evaluate` and `generate`: models, and recipes whose merges run without being written.

/** Opens every model of all subjects in one engine. */
export async function openTargets(
  names: readonly string[],
  place: Place,
  where: Where,
): Promise<{ calls: WorkerCalls; targets: RunTarget[] }> {
  const { workingFolder } = place;
  const subjects = [];
  for (const name of names) {
    const { recipe, file, isRecipe } = await readSubject(name, workingFolder);
    const places = [dirname(file), workingFolder];
    await requireModelNames(recipeModels(recipe), places);
    const found = await lookUpModels(
      recipeRepositories(recipe),
      places,
      undefined,
      hubAddress(where.hub).url,
    );
    // folders by their whole paths: each subject's models are beside it
    const whole = new Map(found.map((one) => [one.name, one.folder ?? one.id ?? one.name]));
    const texts = await readCalibrationTexts(recipe, places);
    subjects.push({ recipe: renameRepositories(recipe, whole), isRecipe, texts });
  }
  const all = [...new Set(subjects.flatMap(({ recipe }) => recipeRepositories(recipe)))];
  const { calls, refs: opened } = await openNamed(all, place, where);
  if (opened.length !== all.length) {
    throw new AmalgamError('Internal', 'A model was opened under another name.', 'Please report this.');
  }
  const refs = new Map(all.map((name, i) => [name, opened[i]!]));
  for (const { texts } of subjects) {
    for (const { name, text } of texts) await calls.addCalibrationText(name, text);
  }
  const targets = subjects.map(({ recipe, isRecipe }): RunTarget => {
    const renamed = renameRepositories(recipe, refs);
    return isRecipe ? { recipe: renamed } : { model: renamed.models![0]!.model };
  });
  return { calls, targets };
}
