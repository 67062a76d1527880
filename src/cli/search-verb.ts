/** What `search` does: open the recipe's models, search, write the best recipe, print what was found. */
import { resolve } from 'node:path';
import process from 'node:process';
import { formatSeconds } from '../formats/quantity';
import { formatRecipe } from '../formats/recipe-format';
import type { SearchPoint, SearchReport } from '../reports/search';
import type { TaskSource } from '../reports/tasks';
import type { Place } from './compare-verbs';
import { readInput } from './input-files';
import { openJob, readRecipe } from './job';
import { problemLines } from './print';
import { publishedTexts, renameTexts } from './recipe-texts';
import { checkReportPlace, writeWhole } from './report-file';
import type { SearchCommand } from './search-command';
import { taskSource } from './task-source';

export async function searchVerb(command: SearchCommand, place: Place): Promise<number> {
  const { workingFolder, undo, say, write } = place;
  const { window, stride, evaluations, seed, engine } = command;
  const file = resolve(workingFolder, command.recipe);
  const out = resolve(workingFolder, command.out);
  const reportFile = command.report === undefined ? undefined : resolve(workingFolder, command.report);
  await checkReportPlace(out, 'out');
  if (reportFile !== undefined) await checkReportPlace(reportFile);
  const recipe = await readRecipe(file);
  const inputs = [];
  for (const input of command.inputs) inputs.push(await readInput(input, workingFolder));
  const { names, ...asked } = command.tasks ?? { names: [], metric: 'acc', limit: null, fewshot: null };
  const sources: TaskSource[] = [];
  for (const name of names) sources.push(await taskSource(name, workingFolder));
  const tasks = command.tasks && { ...asked, tasks: sources };
  const job = await openJob(recipe, file, workingFolder, command, undo, say);
  const plan = await job.calls.plan(job.recipe);
  for (const line of problemLines(plan.problems)) say(line);
  if (!plan.clean) return 1;
  const report = await job.calls.search(
    { recipe: job.recipe, inputs, ...(tasks && { tasks }), window, stride, evaluations, seed, engine },
    ({ done, total, points, secondsLeft }) => {
      const values = points.flatMap(({ perplexity, score }) => score?.value ?? perplexity ?? []);
      const best = values.length === 0 ? Number.NaN : tasks ? Math.max(...values) : Math.min(...values);
      const left = secondsLeft === null ? '' : ` · ${formatSeconds(secondsLeft)} left`;
      process.stderr.write(`${done}/${total} measured · best of the last ${best.toFixed(4)}${left}\n`);
    },
  );
  // models and texts by the names that the recipe has for them
  const texts = new Map([...publishedTexts(recipe)].map(([name, short]) => [short, name]));
  const { parameters, models = [] } = renameTexts(report.recipe, texts);
  const named = (recipe.models ?? []).map(({ model }, i) => ({ ...models[i]!, model }));
  await writeWhole(out, formatRecipe({ ...recipe, parameters, models: named }));
  if (reportFile !== undefined) await writeWhole(reportFile, `${JSON.stringify(report, null, 2)}\n`);
  await write(`${searchText(report, command.tasks?.metric)}\n`);
  return 0;
}

/**
 * The report in a few lines.
 * @param metric of tasks, where the search went by them
 */
export function searchText({ points, best, reused, seconds }: SearchReport, metric?: string): string {
  const [first] = points;
  const found = points[best]!;
  const figure = ({ perplexity, score }: SearchPoint) => {
    if (metric === undefined) return `perplexity ${perplexity === null ? '–' : perplexity.toFixed(4)}`;
    const error = score?.stderr ?? null;
    return `${metric} ${score ? score.value.toFixed(4) : '–'}${error === null ? '' : ` ± ${error.toFixed(4)}`}`;
  };
  const values = Object.entries(found.values).map(([name, value]) => `${name} ${value}`);
  return [
    `recipe as given: ${figure(first!)}`,
    `best of ${points.length}: ${figure(found)} with ${values.join(', ')}`,
    ...(metric === undefined ? [] : ['It was chosen on these items: score it on others before you cite it.']),
    `${reused} of them found in the cache; ${formatSeconds(seconds)}`,
  ].join('\n');
}
