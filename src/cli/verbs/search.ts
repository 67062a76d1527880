import { basename, resolve } from 'node:path';
import process from 'node:process';
import { formatSeconds } from '../../formats/quantity';
import { copyOf } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { bestOptions } from '../../recipe/options';
import type { BackendChoice } from '../../reports/backend';
import { BEST_STEPS, type BestStep } from '../../reports/find-best';
import type { Options, OptionValues } from '../../reports/option';
import type { TaskSource } from '../../reports/tasks';
import { itemOptions } from '../../tasks/options';
import { parseOne, runOf, runOptions, usage, usageOf, type Verb } from '../arguments';
import { type InputFile, itemsOf, readInput, taskSource } from '../input-files';
import { openJob, plannedJob, readRecipe, type Where } from '../job';
import { bestRowText, bestText } from '../print';
import { publishedTexts, renameTexts } from '../recipe-texts';
import { checkReportPlace, reportWriter, writeWhole } from '../report-file';

interface SearchCommand extends Where, OptionValues<typeof bestOptions> {
  recipe: string;
  inputs: InputFile[];
  /** Names of tasks, or paths of files of rows, in place of inputs. */
  tasks?: { names: string[]; metric: string } & ReturnType<typeof itemsOf>;
  steps: readonly BestStep[];
  out?: string;
  report?: string;
  engine: BackendChoice;
}

const inputOptions = {
  text: { kind: 'list', whole: true, argument: 'FILE', help: 'A text to measure on.' },
  tokens: { kind: 'list', whole: true, argument: 'IDS.json', help: 'A text as token ids.' },
} as const satisfies Options;

const scoredOptions = {
  task: { kind: 'list', argument: 'NAME', help: 'Tasks that ship, or files of rows.' },
  metric: { kind: 'text', argument: 'acc', help: 'The metric whose mean over the tasks counts.' },
  ...itemOptions,
} as const satisfies Options;

const searchOptions = {
  out: { kind: 'text', argument: 'BEST.yml', help: 'Where the recipe of the best is written.' },
  steps: { kind: 'list', argument: BEST_STEPS.join(','), help: 'What is tried; all of it unless said.' },
} as const satisfies Options;

const searching = {
  ...{ ...searchOptions, ...inputOptions, ...scoredOptions },
  ...{ ...bestOptions, ...runOptions },
};

export const searchVerb: Verb<SearchCommand> = {
  name: 'search',
  usage: `  search <recipe.yml> [--out BEST.yml] [--text FILE … | --tokens IDS.json … | --task NAME[,NAME …]] [--steps ${BEST_STEPS.join(',')}]
         ${usageOf(scoredOptions, 'metric')} [--limit N [--sample-seed S]] ${usageOf(itemOptions, 'fewshot')} ${usageOf(bestOptions)} ${usageOf(runOptions)}
      Finds the best merge of a recipe’s models: every method that reads no text at its own λ, then Gram merges, then
      weights, λ and density around the best; on texts, on tasks (as for evaluate), or on text that the contributors
      generate. One part of it is tuned on, one compared on, and the table is of a third. Nothing is merged; the best
      recipe goes to BEST.yml. What was measured is kept: the same command goes on from there, also with a larger budget.
`,

  options: searching,

  parse(args) {
    const { subject: recipe, options, given } = parseOne('search', 'recipe file', args, searching);
    const { out, budget, seed, task: names, metric = 'acc', steps } = options;
    const unknown = steps.find((step) => !BEST_STEPS.some((known) => known === step));
    if (unknown !== undefined) throw usage(`--steps has ${unknown}; it is some of ${BEST_STEPS.join(', ')}.`);
    const inputs = [
      ...options.text.map((textFile) => ({ textFile })),
      ...options.tokens.map((tokensFile) => ({ tokensFile })),
    ];
    const [left] = ['task', 'metric', 'limit', 'sample-seed', 'fewshot'].filter((flag) => given.has(flag));
    if (names.length === 0 && left !== undefined) throw usage(`--${left} needs --task NAME.`);
    const tasks = names.length > 0 && { names, metric, ...itemsOf(options) };
    if (tasks && inputs.length > 0) throw usage('search goes by texts or by tasks, not by both.');
    return {
      ...{ recipe, inputs, budget, seed },
      steps: BEST_STEPS.filter((step) => steps.length === 0 || steps.includes(step)),
      ...(out !== undefined && { out }),
      ...(tasks && { tasks }),
      ...runOf(options),
    };
  },

  async run(command, place) {
    const { workingFolder, write } = place;
    const { steps, budget, seed, engine } = command;
    const file = resolve(workingFolder, command.recipe);
    const out = command.out === undefined ? undefined : resolve(workingFolder, command.out);
    if (out !== undefined) await checkReportPlace(out, 'out');
    const writeReport = await reportWriter(command.report, workingFolder);
    const recipe = await readRecipe(file);
    const texts = [];
    for (const input of command.inputs) {
      const name = basename('textFile' in input ? input.textFile : input.tokensFile);
      texts.push({ name, input: await readInput(input, workingFolder) });
    }
    const { names, ...asked } = command.tasks ?? { names: [], metric: 'acc', limit: null, fewshot: null };
    const sources: TaskSource[] = [];
    for (const name of names) sources.push(await taskSource(name, workingFolder));
    const tasks = command.tasks && { ...asked, tasks: sources };
    const job = await openJob(recipe, file, place, command);
    if (!(await plannedJob(job, place)).clean) return 1;
    const report = await job.calls.findBest(
      { recipe: job.recipe, texts, ...(tasks && { tasks }), steps, budget, seed, engine },
      ({ rows, secondsLeft }) => {
        const left = secondsLeft === null ? '' : ` · ${formatSeconds(secondsLeft)} left`;
        for (const row of rows) process.stderr.write(`${bestRowText(row)}${left}\n`);
      },
    );
    if (out !== undefined) {
      const { target } = report.rows.find(({ id }) => id === report.best)!;
      const best = 'recipe' in target ? target.recipe : copyOf(target.model);
      // models and texts by the names that the recipe has for them
      const shortNames = new Map([...publishedTexts(recipe)].map(([name, short]) => [short, name]));
      const { mergeMethod, baseModel, parameters, models = [] } = renameTexts(best, shortNames);
      const given = [recipe.baseModel, ...(recipe.models ?? []).map(({ model }) => model)];
      const opened = [job.recipe.baseModel, ...(job.recipe.models ?? []).map(({ model }) => model)];
      const nameOf = (model: string) => given[opened.indexOf(model)] ?? model;
      const { baseModel: _, ...rest } = recipe;
      const named = models.map((entry) => ({ ...entry, model: nameOf(entry.model) }));
      const base = baseModel === undefined ? {} : { baseModel: nameOf(baseModel) };
      await writeWhole(out, formatRecipe({ ...rest, ...base, mergeMethod, parameters, models: named }));
    }
    await writeReport(report);
    await write(`${bestText(report)}\n`);
    return 0;
  },
};
