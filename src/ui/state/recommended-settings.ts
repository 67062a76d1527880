/** “Merge with recommended settings”: what measured best, set in one go. Pure. */

import { methodById } from '../../merge/methods/index';
import type { ModelInfo } from '../../reports/models';
import { type RecipeState, setMethod } from './recipe-state';

/** What the models read: 12 tokens and more for every input of the widest layer. Every token is a step of writing. */
const READS = [
  { below: 2e6, windows: 33, window: 128 },
  { below: 2e7, windows: 32, window: 256 },
  { below: Number.POSITIVE_INFINITY, windows: 128, window: 256 },
];

/** What the person set for the models to read; what was set here for models of some size is chosen anew. */
function chosenReading({ parameters }: RecipeState): { windows: number; window: number } | undefined {
  const { calibration_windows: windows, calibration_window: window } = parameters;
  if (typeof windows !== 'number' || typeof window !== 'number') return undefined;
  const isOurs = READS.some((of) => of.windows === windows && of.window === window);
  return isOurs ? undefined : { windows, window };
}

/**
 * The recipe as a Gram merge of the same models, untrimmed, with λ searched for, each calibrated on the text that was
 * chosen for it, or else of its own writing (docs/importance.md): what the recommended merge starts from. How much they read
 * follows from their size unless the person has set it.
 */
export function mergeWell(recipe: RecipeState, models: readonly ModelInfo[]): RecipeState {
  const base = models.find((m) => m.ref === recipe.base);
  const size = base?.parameters ?? Number.POSITIVE_INFINITY;
  const reads = chosenReading(recipe) ?? READS.find(({ below }) => size < below) ?? READS.at(-1)!;
  const gram = methodById.get('gram')!;
  const set = setMethod(recipe, methodById.get(recipe.method), gram);
  return {
    ...set,
    parameters: { lambda: 'auto', calibration_windows: reads.windows, calibration_window: reads.window },
    contributors: set.contributors.map((c) => {
      const { density: _, ...parameters } = c.parameters;
      return { ...c, parameters };
    }),
  };
}
