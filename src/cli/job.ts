import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { AmalgamError } from '../errors';
import { DEFAULT_HUB_URL } from '../formats/hub-id';
import { displayName } from '../formats/names';
import type { Recipe } from '../formats/recipe';
import { recipeRepositories, renameRepositories } from '../formats/recipe-models';
import { parseRecipe } from '../formats/recipe-yaml';
import { type AppServer, startAppServer } from './app-server';
import { openStudioPage, type StudioPage } from './browser';
import { ensureBuilt } from './build';
import { HUB_ORIGINS } from './content-security-policy';
import { lookUpModels, publishedNames } from './model-lookup';
import { readCalibrationTexts } from './recipe-texts';

/** A recipe opened in a running studio: everything `plan` and `merge` have in common. */
export interface Job {
  /** Hub models are pinned to the commit they were opened at. */
  recipe: Recipe;
  server: AppServer;
  page: StudioPage;
}

/** Things to be undone at the end, last first, however it ends. */
export type Undo = (() => Promise<void>)[];

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Reads a recipe file.
 * @throws RecipeInvalid with the line and column of every mistake, NotFound
 */
export async function readRecipe(file: string): Promise<Recipe> {
  const text = await readFile(file, 'utf8').catch((thrown: NodeJS.ErrnoException) => {
    const why = thrown.code === 'ENOENT' ? 'there is no such file' : thrown.message;
    throw new AmalgamError('NotFound', `${file} cannot be read: ${why}.`, 'Give the path of a recipe file.');
  });
  const { recipe, problems } = parseRecipe(text);
  if (recipe && problems.length === 0) return recipe;
  const lines = problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`);
  const hints = [...new Set(problems.map(({ hint }) => hint))];
  throw new AmalgamError('RecipeInvalid', lines.join('\n'), hints.join('\n'));
}

/**
 * The recipe of a merged model with its models where they are: the recipe it was merged by knows, its own metadata hold
 * names only.
 * @param recipeFile that recipe
 * @throws NotFound, RecipeInvalid
 */
export async function locateModels(
  merged: Recipe,
  recipeFile: string,
  workingFolder: string,
): Promise<Recipe> {
  const recipe = await readRecipe(recipeFile);
  const found = await lookUpModels(recipeRepositories(recipe), [dirname(recipeFile), workingFolder]);
  const names = publishedNames(
    found,
    recipe.stages?.map((stage) => stage.name),
  );
  const folders = found.flatMap(({ name, folder }) =>
    folder === undefined ? [] : [[names.get(name)!, folder] as const],
  );
  return renameRepositories(merged, new Map(folders));
}

/**
 * Builds the studio if need be, starts the server and the browser, and opens the recipe's models in it.
 *
 * @param recipeFile where the recipe came from: models are looked up beside it
 * @param workingFolder where they are looked up next
 * @param undo gets what has to be closed at the end
 */
export async function openJob(
  recipe: Recipe,
  recipeFile: string,
  workingFolder: string,
  hub: string | undefined,
  undo: Undo,
  say: (line: string) => void,
): Promise<Job> {
  const places = [resolve(workingFolder, dirname(recipeFile)), workingFolder];
  const found = await lookUpModels(recipeRepositories(recipe), places);
  const texts = await readCalibrationTexts(recipe, places);
  const names = publishedNames(
    found,
    recipe.stages?.map((stage) => stage.name),
  );
  const published = renameRepositories(recipe, names);
  const dist = await ensureBuilt(PROJECT, () => say('Building the studio …'));

  const server = await startAppServer(dist, hub === undefined ? HUB_ORIGINS : hubOrigins(hub));
  undo.push(() => server.close());
  const models = [];
  for (const { name, folder } of found) {
    if (folder === undefined) {
      models.push({ name });
      continue;
    }
    const { url, dangling } = await server.serveFolder(folder);
    for (const path of dangling) {
      say(`warning: ${displayName(path)} in ${displayName(name)} is a link to nothing and is left out.`);
    }
    models.push({ name: names.get(name)!, url });
  }

  const page = await openStudioPage(server.url);
  undo.push(() => page.close());
  const token = process.env.HF_TOKEN;
  const address = { ...(hub === undefined ? {} : { url: hub }), ...(token ? { token } : {}) };
  try {
    const opened = await page.call('open', { recipe: published, hub: address, models, texts });
    return { recipe: opened.recipe, server, page };
  } catch (thrown) {
    throw withPlaces(thrown, models, places, hub);
  }
}

/** Where the page of `--hub` may be sent for downloads is not known beforehand: any https host, or any local port. */
function hubOrigins(hub: string): string[] {
  const { origin, hostname } = new URL(hub);
  const isLocal = ['127.0.0.1', 'localhost', '[::1]'].includes(hostname);
  return [origin, 'https:', ...(isLocal ? ['http://127.0.0.1:*', 'http://localhost:*'] : [])];
}

/** A name that is no folder was looked for on the Hub; when it is not there either, both are said. */
function withPlaces(
  thrown: unknown,
  models: { name: string; url?: string }[],
  places: string[],
  hub?: string,
) {
  if (!(thrown instanceof AmalgamError) || thrown.code !== 'NotFound') return thrown;
  const asked = models.filter(({ url }) => url === undefined).map(({ name }) => displayName(name));
  if (asked.length === 0) return thrown;
  const looked = [...new Set(places)].map((place) => displayName(place)).join(' and ');
  return new AmalgamError(
    'NotFound',
    thrown.message,
    `${thrown.hint} ${asked.join(', ')}: no folder of that name in ${looked}, so it was looked up on ${hub ?? DEFAULT_HUB_URL}.`,
    { cause: thrown },
  );
}
