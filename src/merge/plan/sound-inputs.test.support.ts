/** What each place that opens a model says of its faults. */
import { errorReport } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import { openerOf, recipeOf, type TinyOptions, tinyModel } from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { openSides } from '../../tools/difference/compare-models';
import { methodById } from '../methods';
import { makePlan } from './recipe-plan';

export const whole = (path: string, options: TinyOptions = {}) =>
  tinyModel(path, { whole: true, hidden: 8, vocabulary: 8, ...options });
export const copyRecipe: Recipe = {
  mergeMethod: 'passthrough',
  models: [{ model: 'm', parameters: {} }],
  parameters: {},
  amalgam: {},
};

/** What each place says of a model: a merge with a sound one, a copy (collapse, evaluate, GGUF), a comparison (extract). */
export const places: Record<string, (folder: ModelFolder) => Promise<string>> = {
  merge: async (folder) => {
    const plan = await makePlan(recipeOf(['m']), openerOf(whole('base'), folder), methodById);
    return plan.problems.map(({ code, tensors }) => `${code} ${tensors ?? ''}`).join('; ');
  },
  copy: async (folder) => {
    const plan = await makePlan(copyRecipe, openerOf(folder), methodById);
    return plan.problems.map(({ code, tensors }) => `${code} ${tensors ?? ''}`).join('; ');
  },
  compare: async (folder) => {
    try {
      return (await openSides('base', 'm', openerOf(whole('base'), folder))).notes.join('; ');
    } catch (thrown) {
      const { code, message } = errorReport(thrown);
      return `${code} ${message}`;
    }
  },
};
