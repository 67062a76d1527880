import { resolve } from 'node:path';
import { printableJson } from '../../formats/names';
import { repositoriesRead } from '../../formats/recipe-models';
import { parseOne, placeOf, placeOptions, strictOption, usageOf, type Verb } from '../arguments';
import { isAccepted, openJob, readRecipe, type Where } from '../job';
import { planText } from '../print';

interface PlanCommand extends Where {
  recipe: string;
  json: boolean;
  strict: boolean;
}

const jsonOption = { json: { kind: 'boolean', help: 'The report as JSON.', default: false } } as const;
const planOptions = { ...jsonOption, ...strictOption, ...placeOptions };

export const planVerb: Verb<PlanCommand> = {
  name: 'plan',
  usage: `  plan <recipe.yml> ${usageOf(planOptions)}
      Reads headers only and says what a merge would do. Exit code 1 when the recipe does not fit the models; with --strict also
      when a key or parameter has no effect.
`,

  options: planOptions,

  parse(args) {
    const { subject: recipe, options } = parseOne('plan', 'recipe file', args, planOptions);
    return { recipe, json: options.json, strict: options.strict, ...placeOf(options) };
  },

  async run(command, place) {
    const file = resolve(place.workingFolder, command.recipe);
    const recipe = await readRecipe(file);
    const job = await openJob(recipe, file, place, command, repositoriesRead);
    const report = await job.calls.plan(job.recipe);
    await place.write(`${command.json ? printableJson(report) : planText(report, recipe.mergeMethod)}\n`);
    return isAccepted(report, command.strict) ? 0 : 1;
  },
};
