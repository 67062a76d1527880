/** What `compare` and `extract-lora` do: open both models in a session of the worker, run the job, print what it found. */

import { resolve } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';
import { copyOf } from '../formats/recipe';
import type { CompareProgress, ExtractLoraRequest } from '../reports/compare';
import type { CompareCommand, ExtractLoraCommand } from './compare-command';
import { compareText, extractText } from './compare-print';
import { readInput } from './input-files';
import { type Job, openJob, type Undo } from './job';
import { beginOutputFolder, type OutputFolder } from './output-folder';
import { progressPrinter } from './progress-printer';
import { checkReportPlace, writeWhole } from './report-file';

/** Where a verb runs and where it prints. */
export interface Place {
  workingFolder: string;
  undo: Undo;
  say(line: string): void;
  write(text: string): Promise<void>;
}

export async function compareVerb(command: CompareCommand, place: Place): Promise<number> {
  const out = resolve(place.workingFolder, command.out);
  const report = await withBoth(command, out, place, (job, both, onProgress) =>
    job.calls.compare({ ...command.request, ...both }, onProgress),
  );
  await place.write(`${compareText(report, out)}\n`);
  return 0;
}

export async function extractLoraVerb(command: ExtractLoraCommand, place: Place): Promise<number> {
  const out = resolve(place.workingFolder, command.out);
  const reportFile = command.report === undefined ? undefined : resolve(place.workingFolder, command.report);
  if (reportFile !== undefined) await checkReportPlace(reportFile);
  const evaluation = command.evaluation && (await readInput(command.evaluation, place.workingFolder));
  const report = await withBoth(command, out, place, (job, both, onProgress) =>
    job.calls.extractLora({ ...command.request, ...both, ...(evaluation && { evaluation }) }, onProgress),
  );
  if (reportFile !== undefined) await writeWhole(reportFile, `${JSON.stringify(report, null, 2)}\n`);
  await place.write(`${extractText(report, out)}\n`);
  return 0;
}

type Both = Pick<ExtractLoraRequest, 'base' | 'finetuned' | 'destination'>;

/** Opens both models and the output folder, runs the job with progress, and sees that its folder is there. */
async function withBoth<T>(
  { request, hub, cache }: CompareCommand | ExtractLoraCommand,
  out: string,
  { workingFolder, undo, say }: Place,
  run: (job: Job, both: Both, onProgress: (progress: CompareProgress) => void) => Promise<T>,
): Promise<T> {
  const output: OutputFolder = await beginOutputFolder(out);
  undo.push(() => output.discard());
  // both models as a recipe names them: looked up, served and pinned like those of a merge
  const job = await openJob(
    copyOf(request.base, request.finetuned),
    resolve(workingFolder, 'models'),
    workingFolder,
    { ...(hub ? { hub } : {}), ...(cache ? { cache } : {}), engine: request.engine },
    undo,
    say,
  );
  const [base, finetuned] = job.recipe.models!.map(({ model }) => model);
  const printer = progressPrinter(process.stderr);
  const destination = { kind: 'served', url: job.server.receiveOutput(output) } as const;
  const both = { base: base!, finetuned: finetuned!, destination };
  const result = await run(job, both, printer.print).finally(() => printer.end());
  if (!output.isCommitted) {
    throw new AmalgamError('Internal', 'The job ended without an output folder.', 'Please report this.');
  }
  return result;
}
