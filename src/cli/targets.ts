/** Targets of `evaluate` and `generate`: models, and recipes whose merges run without being written. */
import { dirname } from 'node:path';
import { AmalgamError } from '../errors';
import { recipeModels, recipeRepositories, renameRepositories } from '../formats/recipe-models';
import type { RunTarget } from '../reports/evaluate';
import type { WorkerCalls } from '../worker/calls';
import { hubAddress, type Job, openJob, openNamed, readSubject, type Where } from './job';
import { lookUpModels, requireModelNames } from './model-lookup';
import { readCalibrationTexts } from './recipe-texts';
import type { Place } from './verb';

/** Opens a single one. */
export async function openTarget(
  command: Where & { model: string },
  place: Place,
): Promise<{ job: Job; target: RunTarget }> {
  const { recipe, file, isRecipe } = await readSubject(command.model, place.workingFolder);
  const job = await openJob(recipe, file, place, command);
  const target = isRecipe ? { recipe: job.recipe } : { model: job.recipe.models![0]!.model };
  return { job, target };
}

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
