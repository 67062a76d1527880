/** The recipe of a merge on the Hub, opened to be changed. */
import { recipeOfText } from '../../formats/recipe-yaml';
import { openAllOfHub } from './named-models';
import { openRecipe } from './opened-recipe';
import { notify, type Studio } from './studio';

const FOUND = {
  metadata: 'the recipe in its weights',
  'mergekit_config.yml': 'its mergekit_config.yml',
  'README.md': 'the recipe in its card',
} as const;

/**
 * Opens the recipe that a merge on the Hub was made by, and asks the Hub for its models: their cards say what is not there.
 * @throws AmalgamError `NotFound` where the model does not say how it was merged, `RecipeInvalid`, and what the Hub's answers mean
 */
export async function remix(studio: Studio, idOrUrl: string, signal: AbortSignal): Promise<void> {
  const { text, from } = await studio.worker.publishedRecipe(idOrUrl, signal);
  openRecipe(studio, recipeOfText(`What ${idOrUrl} says of its merge`, text));
  // whoever opens a recipe of the Hub wants its models from there
  void openAllOfHub(studio);
  if (from === 'base_model') {
    notify(
      studio,
      'note',
      `Opened the models that the card of ${idOrUrl} names.`,
      'It names no method: this is their average. Choose one, and undo brings the recipe before back.',
    );
    return;
  }
  notify(studio, 'note', `Opened ${FOUND[from]}, of ${idOrUrl}.`, 'Undo brings the recipe before it back.');
}
