/** What `importance` does: open base and model in a session of the worker, work out the masks, print what it took. */
import { resolve } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { formatBytes, formatCount, formatSeconds } from '../formats/quantity';
import type { Recipe } from '../formats/recipe';
import type { ImportanceReport } from '../reports/importance';
import type { Place } from './compare-verbs';
import { type ImportanceCommand, tokenWindows } from './importance-command';
import { parseTokens, readTextFile } from './input-files';
import { openJob } from './job';
import { beginOutputFolder } from './output-folder';
import { problemLines } from './print';
import { progressPrinter } from './progress-printer';

export async function importanceVerb(command: ImportanceCommand, place: Place): Promise<number> {
  const { workingFolder, undo, say, write } = place;
  const out = resolve(workingFolder, command.out);
  const output = await beginOutputFolder(out);
  undo.push(() => output.discard());
  const job = await openJob(
    await sizedRecipe(command, workingFolder),
    resolve(workingFolder, 'model'),
    workingFolder,
    command,
    undo,
    say,
  );
  const plan = await job.calls.plan(job.recipe);
  for (const line of problemLines(plan.problems)) say(line);
  if (!plan.clean) return 1;
  const printer = progressPrinter(process.stderr);
  const destination = { kind: 'served', url: job.server.receiveOutput(output) } as const;
  const report = await job.calls
    .importance({ recipe: job.recipe, engine: command.engine, destination }, printer.print)
    .finally(() => printer.end());
  if (!output.isCommitted) {
    throw new AmalgamError('Internal', 'The job ended without an output folder.', 'Please report this.');
  }
  await write(`${importanceText(report, out)}\n`);
  return 0;
}

/** The recipe with windows for as many token ids as the file has. */
async function sizedRecipe(command: ImportanceCommand, workingFolder: string): Promise<Recipe> {
  const { recipe, tokensFile } = command;
  if (tokensFile === undefined) return recipe;
  const ids = parseTokens(await readTextFile(tokensFile, workingFolder), tokensFile);
  const { windows, window } = tokenWindows(ids.length, command);
  return {
    ...recipe,
    parameters: { ...recipe.parameters, calibration_windows: windows, calibration_window: window },
  };
}

/** The report in a few lines. */
export function importanceText(report: ImportanceReport, out: string): string {
  const tensors = report.computed + report.reused;
  const reads = report.contributors.map(
    ({ id, calibration, forwardTokens }) =>
      `${displayName(id)}: ${displayName(calibration, 200)}; ${forwardTokens === 0 ? 'nothing was run' : `${formatCount(forwardTokens)} tokens run`}`,
  );
  const counts = `${formatCount(tensors)} masks, ${formatCount(report.reused)} of them found in the cache`;
  const peak = report.peakBytes > 0 ? `, ${formatBytes(report.peakBytes)} on the device at most` : '';
  return [
    ...reads,
    `${counts}; ${formatSeconds(report.seconds)}${peak}`,
    ...report.notes.slice(0, 10).map((note) => displayName(note, 200)),
    `${displayName(out)}: masks.safetensors, importance.json`,
  ].join('\n');
}
