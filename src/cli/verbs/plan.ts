import { printableJson } from '../../formats/names';
import { repositoriesRead } from '../../formats/recipe-models';
import { defineVerb, placeOptions, strictOption } from '../arguments';
import { isAccepted, openJob, readSubject } from '../job';
import { planText } from '../print';

export const planVerb = defineVerb({
  name: 'plan',
  subjects: ['model'],
  about:
    'Reads headers only and says what a merge would do. Exit code 1 when the recipe does not fit the models; with --strict also when a key or parameter has no effect.',
  options: {
    json: { kind: 'boolean', help: 'The report as JSON.', default: false },
    ...strictOption,
    ...placeOptions,
  },

  async run({ subjects: [named = ''], options }, place) {
    const { recipe, file } = await readSubject(named, place.workingFolder);
    const job = await openJob(recipe, file, place, options, repositoriesRead);
    const report = await job.calls.plan(job.recipe);
    await place.write(`${options.json ? printableJson(report) : planText(report, recipe.mergeMethod)}\n`);
    const accepted = isAccepted(report, options.strict);
    if (report.clean && !accepted) place.say('The recipe has names without effect, which --strict refuses.');
    return accepted ? 0 : 1;
  },
});
