/** “Merge with recommended settings”: what measured best, set in one go. Pure. */

import { methodById } from '../../merge/methods/index';
import type { ModelInfo } from '../../reports/models';
import { type RecipeState, setMethod } from './recipe-state';

/**
 * Size of the calibration text by the base's parameters: at least 12 tokens per input of the widest layer. Every token is a
 * step of writing.
 */
const READS = [
  { below: 2e6, windows: 33, window: 128 },
  { below: 2e7, windows: 32, window: 256 },
  { below: Number.POSITIVE_INFINITY, windows: 128, window: 256 },
];

/** Calibration size that the user set; one of the sizes in `READS` counts as set by us and is chosen anew. */
function chosenReading({ parameters }: RecipeState): { windows: number; window: number } | undefined {
  const { calibration_windows: windows, calibration_window: window } = parameters;
  if (typeof windows !== 'number' || typeof window !== 'number') return undefined;
  const isOurs = READS.some((of) => of.windows === windows && of.window === window);
  return isOurs ? undefined : { windows, window };
}

/**
 * The recipe as a Gram merge of the same models, untrimmed, with λ searched for, each model calibrated on its chosen text,
 * or else on text it generates (docs/importance.md): the start of the recommended merge. The calibration size follows from
 * the models' size unless the user has set it.
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
