/** What `collapse` does: open the model in a session of the worker, measure or collapse, print what came of it. */

import { resolve } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';
import { copyOf } from '../formats/recipe';
import type { Calibration } from '../reports/collapse';
import type { CollapseCommand } from './collapse-command';
import { collapseText, measureText } from './collapse-print';
import type { Place } from './compare-verbs';
import { readInput, readText } from './input-files';
import { openJob } from './job';
import { beginOutputFolder } from './output-folder';
import { progressPrinter } from './progress-printer';
import { checkReportPlace, writeWhole } from './report-file';

export async function collapseVerb(command: CollapseCommand, place: Place): Promise<number> {
  const { workingFolder, undo, say, write } = place;
  const { task } = command;
  const reportFile = command.report === undefined ? undefined : resolve(workingFolder, command.report);
  if (reportFile !== undefined) await checkReportPlace(reportFile);
  const calibration = await readCalibration(command.calibration, workingFolder);
  const isCollapse = task.kind === 'collapse';
  const out = isCollapse ? resolve(workingFolder, task.out) : undefined;
  const asked = isCollapse ? task.evaluation : undefined;
  const evaluation = asked && (await readInput(asked, workingFolder));
  const output = out === undefined ? undefined : await beginOutputFolder(out);
  if (output) undo.push(() => output.discard());
  const job = await openJob(
    copyOf(task.request.model),
    resolve(workingFolder, 'model'),
    workingFolder,
    { ...command, engine: task.request.engine },
    undo,
    say,
  );
  const { model } = job.recipe.models![0]!;
  const printer = progressPrinter(process.stderr);
  const finish = async (report: object, text: string) => {
    if (reportFile !== undefined) await writeWhole(reportFile, `${JSON.stringify(report, null, 2)}\n`);
    await write(`${text}\n`);
    return 0;
  };
  try {
    if (!isCollapse) {
      const request = { ...task.request, model, calibration: calibration! };
      const report = await job.calls.measureDepth(request, printer.print);
      printer.end();
      return await finish(report, measureText(report));
    }
    const request = {
      ...task.request,
      model,
      ...(calibration && { calibration }),
      ...(evaluation === undefined ? {} : { evaluation }),
      destination: { kind: 'served', url: job.server.receiveOutput(output!) } as const,
    };
    const report = await job.calls.collapse(request, printer.print);
    printer.end();
    if (!output!.isCommitted) {
      throw new AmalgamError('Internal', 'The job ended without an output folder.', 'Please report this.');
    }
    return await finish(report, collapseText(report, out!));
  } finally {
    printer.end();
  }
}

async function readCalibration(
  given: CollapseCommand['calibration'],
  workingFolder: string,
): Promise<Calibration | undefined> {
  if (!given) return undefined;
  const { window } = given;
  if ('tokensFile' in given) {
    const input = await readInput({ tokensFile: given.tokensFile }, workingFolder);
    return 'ids' in input ? { input, window } : undefined;
  }
  const files = await Promise.all(given.textFiles.map((name) => readText(name, workingFolder)));
  const texts = given.perLine
    ? files.flatMap((text) => text.split(/\r?\n/).filter((line) => line.trim() !== ''))
    : files;
  return { input: { texts }, window };
}
