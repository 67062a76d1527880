import { resolve } from 'node:path';
import { repositoriesRead } from '../../formats/recipe-models';
import type { BackendChoice } from '../../reports/backend';
import { engineOptions, parseOne, runOf, usageOf } from '../arguments';
import { locateModels, openJob, type Where } from '../job';
import { readMergedMetadata } from '../merged-metadata';
import { verifyText } from '../print';
import { withProgress } from '../progress-printer';
import type { Verb } from '../verb';

interface VerifyCommand extends Where {
  merged: string;
  recipe?: string;
  engine: BackendChoice;
}

const verifyOptions = {
  recipe: { kind: 'text', argument: 'FILE', help: 'A recipe that has the models where they are.' },
  ...engineOptions,
} as const;

export const verifyVerb: Verb<VerifyCommand> = {
  name: 'verify',
  usage: `  verify <merged> ${usageOf(verifyOptions)}
      Repeats the merge that a merged model's metadata describes and compares the bytes. Exit code 1 when they differ.
      The metadata names models, not folders: they are looked up beside the merged folder, or where the recipe of --recipe
      has them.
`,

  options: verifyOptions,

  parse(args) {
    const { subject: merged, options } = parseOne('verify', 'merged folder', args, verifyOptions);
    const { recipe } = options;
    return { merged, ...runOf(options), ...(recipe === undefined ? {} : { recipe }) };
  },

  async run(command, place) {
    const { workingFolder } = place;
    const folder = resolve(workingFolder, command.merged);
    const metadata = await readMergedMetadata(folder);
    const { inputs } = metadata;
    const recipe =
      command.recipe === undefined
        ? metadata.recipe
        : await locateModels(metadata.recipe, resolve(workingFolder, command.recipe), workingFolder);
    const job = await openJob(recipe, folder, place, command, repositoriesRead);
    await job.worker.listModel(folder);
    await job.calls.openDisk(folder, folder);
    const request = { merged: folder, recipe: job.recipe, inputs, engine: command.engine };
    const report = await withProgress((print) => job.calls.verify(request, print));
    await place.write(`${verifyText(report)}\n`);
    return report.agrees ? 0 : 1;
  },
};
