/** “Merge with recommended settings”: what measured best, set in one go. Pure. */

import { methodById } from '../../merge/methods/index';
import type { ModelFacts } from '../../reports/models';
import { type RecipeFacts, setMethod } from './recipe-facts';

/** What the models read: 12 tokens and more for every input of the widest layer. Every token is a step of writing. */
const READS = [
  { below: 2e6, windows: 33, window: 128 },
  { below: 2e7, windows: 32, window: 256 },
  { below: Number.POSITIVE_INFINITY, windows: 128, window: 256 },
];

/**
 * The recipe as a Gram merge of the same models, untrimmed, with λ searched for, each calibrated on the text that was
 * chosen for it, or else of its own writing (docs/importance.md): what the recommended merge starts from.
 */
export function mergeWell(recipe: RecipeFacts, models: readonly ModelFacts[]): RecipeFacts {
  const base = models.find((m) => m.ref === recipe.base);
  const size = base?.parameters ?? Number.POSITIVE_INFINITY;
  const { windows, window } = READS.find(({ below }) => size < below) ?? READS.at(-1)!;
  const gram = methodById.get('gram')!;
  const set = setMethod(recipe, methodById.get(recipe.method), gram);
  return {
    ...set,
    parameters: { lambda: 'auto', calibration_windows: windows, calibration_window: window },
    contributors: set.contributors.map((c) => {
      const { density: _, ...parameters } = c.parameters;
      return { ...c, parameters };
    }),
  };
}
