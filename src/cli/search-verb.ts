/** What `search` does: open the recipe's models, search, write the best recipe, print what was found. */
import { resolve } from 'node:path';
import process from 'node:process';
import { formatRecipe } from '../formats/recipe-yaml';
import type { SearchReport } from '../reports/search';
import { formatSeconds } from '../ui/format/quantity';
import type { Place } from './compare-verbs';
import { readInput } from './input-files';
import { openJob, readRecipe } from './job';
import { problemLines } from './print';
import { checkReportPlace, writeWhole } from './report-file';
import type { SearchCommand } from './search-command';

export async function searchVerb(command: SearchCommand, place: Place): Promise<number> {
  const { workingFolder, undo, say, write } = place;
  const { window, stride, evaluations, seed, engine } = command;
  const file = resolve(workingFolder, command.recipe);
  const out = resolve(workingFolder, command.out);
  const reportFile = command.report === undefined ? undefined : resolve(workingFolder, command.report);
  for (const path of [out, reportFile]) if (path !== undefined) await checkReportPlace(path);
  const recipe = await readRecipe(file);
  const inputs = [];
  for (const input of command.inputs) inputs.push(await readInput(input, workingFolder));
  const job = await openJob(recipe, file, workingFolder, command, undo, say);
  const facts = await job.calls.plan(job.recipe);
  for (const line of problemLines(facts.problems)) say(line);
  if (!facts.clean) return 1;
  const report = await job.calls.search(
    { recipe: job.recipe, inputs, window, stride, evaluations, seed, engine },
    ({ done, total, points, secondsLeft }) => {
      const best = Math.min(...points.map(({ perplexity }) => perplexity ?? Number.POSITIVE_INFINITY));
      const left = secondsLeft === null ? '' : ` · ${formatSeconds(secondsLeft)} left`;
      process.stderr.write(`${done}/${total} measured · best of the last ${best.toFixed(4)}${left}\n`);
    },
  );
  // models by the names that the recipe has for them
  const { parameters, models = [] } = report.recipe;
  const named = (recipe.models ?? []).map(({ model }, i) => ({ ...models[i]!, model }));
  await writeWhole(out, formatRecipe({ ...recipe, parameters, models: named }));
  if (reportFile !== undefined) await writeWhole(reportFile, `${JSON.stringify(report, null, 2)}\n`);
  await write(`${searchText(report)}\n`);
  return 0;
}

/** The report in a few lines. */
export function searchText({ points, best, reused, seconds }: SearchReport): string {
  const [first] = points;
  const found = points[best]!;
  const figure = (value: number | null) => (value === null ? '–' : value.toFixed(4));
  const values = Object.entries(found.values).map(([name, value]) => `${name} ${value}`);
  return [
    `recipe as given: perplexity ${figure(first!.perplexity)}`,
    `best of ${points.length}: perplexity ${figure(found.perplexity)} with ${values.join(', ')}`,
    `${reused} of them found in the cache; ${formatSeconds(seconds)}`,
  ].join('\n');
}
