/** “Merge these well”: what measured best, set in one go. Pure. */
import type { ModelFacts } from '../../engine/protocol';
import { methodById } from '../../merge/methods/index';
import { type RecipeFacts, setMethod } from './recipe-facts';

/** Below this many parameters 32 windows of text are 12 tokens and more for every input of the widest layer. */
const SMALL = 20_000_000;
const WINDOWS = { small: 32, usual: 128 };

/**
 * The recipe as a Gram merge of the same models, untrimmed, each calibrated on text of its own writing, with λ searched
 * for (docs/importance.md).
 */
export function mergeWell(recipe: RecipeFacts, models: readonly ModelFacts[]): RecipeFacts {
  const base = models.find((m) => m.ref === recipe.base);
  const windows = base && base.parameters < SMALL ? WINDOWS.small : WINDOWS.usual;
  const gram = methodById.get('gram')!;
  const set = setMethod(recipe, methodById.get(recipe.method), gram);
  return {
    ...set,
    parameters: { lambda: 'auto', calibration_windows: windows },
    contributors: set.contributors.map((c) => {
      const { density: _, calibration: __, ...parameters } = c.parameters;
      return { ...c, parameters };
    }),
  };
}

/** Whether the recipe is such a merge already. */
export function isMergedWell({ method, parameters }: RecipeFacts): boolean {
  return method === 'gram' && parameters.lambda === 'auto';
}
