/** What `evaluate` does with several models and recipes: opens all in one engine, measures them side by side, prints a table. */
import { resolve } from 'node:path';
import process from 'node:process';
import { formatSeconds } from '../formats/quantity';
import type { EvaluateManyReport } from '../reports/evaluate';
import type { EvaluateCommand } from './command';
import type { Place } from './compare-verbs';
import { readInput } from './input-files';
import { columns, datasetText } from './print';
import { progressPrinter } from './progress-printer';
import { checkReportPlace, writeWhole } from './report-file';
import { openTargets, type Read } from './task-verb';

export async function evaluateManyVerb(command: EvaluateCommand, place: Place, read: Read): Promise<number> {
  const { workingFolder, say, write } = place;
  const { model, others = [], window, stride, engine, input: given } = command;
  const names = [model, ...others];
  const reportFile = command.report === undefined ? undefined : resolve(workingFolder, command.report);
  if (reportFile !== undefined) await checkReportPlace(reportFile);
  const local = 'dataset' in given ? undefined : await readInput(given, workingFolder);
  const { calls, targets } = await openTargets({ ...command, models: names }, place, read);
  const printer = progressPrinter(process.stderr);
  try {
    let input = local;
    if ('dataset' in given) {
      const text = await calls.readDataset(given.dataset, printer.print);
      say(datasetText(text));
      input = { text: text.text };
    }
    const report = await calls.evaluateMany(
      { targets, inputs: [input!], window, stride, engine },
      printer.print,
    );
    printer.end();
    if (reportFile !== undefined) {
      const models = report.models.map((one, i) => ({ name: names[i]!, ...one }));
      await writeWhole(reportFile, `${JSON.stringify({ ...report, models }, null, 2)}\n`);
    }
    await write(`${evaluationsText(report, names)}\n`);
    return report.models.some(({ outcomes }) => outcomes.some((outcome) => 'error' in outcome)) ? 1 : 0;
  } finally {
    printer.end();
  }
}

/** A line for each model, the least perplexity marked. */
export function evaluationsText(
  { models, seconds }: Pick<EvaluateManyReport, 'models' | 'seconds'>,
  names: readonly string[],
): string {
  const losses = models.map(({ outcomes: [outcome] }) =>
    outcome && 'report' in outcome ? outcome.report.meanNll : Number.POSITIVE_INFINITY,
  );
  const least = Math.min(...losses);
  const rows = models.map(({ outcomes: [outcome] }, i) => {
    const mark = losses[i] === least && least < Number.POSITIVE_INFINITY ? '*' : '';
    if (!outcome || 'error' in outcome)
      return [mark, names[i]!, outcome?.error.message ?? 'not measured', '', ''];
    const { perplexity, meanNll, tokens } = outcome.report;
    return [mark, names[i]!, perplexity.toFixed(4), meanNll.toFixed(5), `${tokens}`];
  });
  const table = columns([['', 'model', 'perplexity', 'mean loss', 'tokens'], ...rows]);
  return [...table, '', `${formatSeconds(seconds)} in all`].join('\n');
}
