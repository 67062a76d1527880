import { errorReport } from '../../errors';
import { displayName, printableJson } from '../../formats/names';
import { repositoriesRead } from '../../formats/recipe-models';
import { sampledWords } from '../../reports/sampled-changes';
import { defineVerb, placeOptions, strictOption } from '../arguments';
import { isAccepted, openJob, readSubject } from '../job';
import { planText } from '../print';

export const planVerb = defineVerb({
  name: 'plan',
  subjects: ['model'],
  about:
    'Reads headers, and a few rows of the models, and says what a merge would do. Exit code 1 when the recipe does not fit the models; with --strict also when a key or parameter has no effect.',
  options: {
    json: { kind: 'boolean', help: 'The report as JSON.', default: false },
    ...strictOption,
    ...placeOptions,
  },

  async run({ subjects: [named = ''], options }, place) {
    const { recipe, file } = await readSubject(named, place.workingFolder);
    const job = await openJob(recipe, file, place, options, repositoriesRead);
    const report = await job.calls.plan(job.recipe);
    const sampled =
      report.clean && !recipe.stages
        ? await job.calls.sampleChanges(job.recipe).catch((thrown: unknown) => {
            const { code, message } = errorReport(thrown);
            if (code === 'Canceled') throw thrown;
            // the plan holds without
            place.say(`No rows of the models were read: ${message}`);
            return null;
          })
        : null;
    const text = options.json
      ? printableJson({ ...report, ...(sampled && { sampled }) })
      : [
          planText(report, recipe.mergeMethod),
          ...(sampled
            ? [
                '',
                `${sampledWords(
                  sampled,
                  sampled.contributors.map(({ id }) => displayName(id)),
                )}.`,
              ]
            : []),
        ].join('\n');
    await place.write(`${text}\n`);
    const accepted = isAccepted(report, options.strict);
    if (report.clean && !accepted) place.say('The recipe has names without effect, which --strict refuses.');
    return accepted ? 0 : 1;
  },
});
