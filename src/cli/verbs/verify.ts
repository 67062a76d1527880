import { resolve } from 'node:path';
import { AmalgamError } from '../../errors';
import { HASHES_FILE } from '../../formats/output-hashes';
import { repositoriesRead } from '../../formats/recipe-models';
import type { BackendChoice } from '../../reports/backend';
import { checkWritten, isAsWritten } from '../../write/output-commit';
import { engineOptions, parseOne, runOf, usage, usageOf } from '../arguments';
import { diskFolder } from '../disk-folder';
import { listFolder } from '../folder-listing';
import { locateModels, openJob, type Where } from '../job';
import { readMergedMetadata } from '../merged-metadata';
import { verifyText, writtenText } from '../print';
import { withProgress } from '../progress-printer';
import type { Verb } from '../verb';

interface VerifyCommand extends Where {
  merged: string;
  recipe?: string;
  /** Looks at the hashes that were written alone. */
  hashes: boolean;
  engine: BackendChoice;
}

const verifyOptions = {
  recipe: { kind: 'text', argument: 'FILE', help: 'A recipe that has the models where they are.' },
  hashes: { kind: 'boolean', help: 'Hashes the files alone; no model is needed.', default: false },
  ...engineOptions,
} as const;

export const verifyVerb: Verb<VerifyCommand> = {
  name: 'verify',
  usage: `  verify <merged> ${usageOf(verifyOptions)}
      Hashes every file and compares with amalgam-hashes.json, then repeats the merge that the metadata describe and
      compares the bytes. Exit code 1 when they differ. --hashes leaves out the merge.
      The metadata names models, not folders: they are looked up beside the merged folder, or where the recipe of --recipe
      has them.
`,

  options: verifyOptions,

  parse(args) {
    const { subject: merged, options } = parseOne('verify', 'merged folder', args, verifyOptions);
    const { recipe, hashes } = options;
    if (hashes && recipe !== undefined) throw usage('verify --hashes merges nothing: it takes no --recipe.');
    return { merged, hashes, ...runOf(options), ...(recipe === undefined ? {} : { recipe }) };
  },

  async run(command, place) {
    const { workingFolder } = place;
    const folder = resolve(workingFolder, command.merged);
    if (command.hashes) {
      const { files } = await listFolder(folder);
      const written = await checkWritten(diskFolder(command.merged, files.values()).files);
      if (written === null) throw noHashes(folder);
      await place.write(`${writtenText(written)}\n`);
      return isAsWritten(written) ? 0 : 1;
    }
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

function noHashes(folder: string): AmalgamError {
  return new AmalgamError(
    'NotFound',
    `${folder} has no ${HASHES_FILE}, which says what was written.`,
    'Leave out --hashes: the merge is then repeated and its bytes compared.',
  );
}
