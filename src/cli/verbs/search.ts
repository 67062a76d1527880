import { resolve } from 'node:path';
import process from 'node:process';
import { protocolOptions } from '../../evaluate/options';
import { formatSeconds } from '../../formats/quantity';
import { formatRecipe } from '../../formats/recipe-format';
import { searchOptions } from '../../recipe/options';
import type { BackendChoice } from '../../reports/backend';
import type { Options, OptionValues } from '../../reports/option';
import type { SearchPoint, SearchReport } from '../../reports/search';
import type { TaskSource } from '../../reports/tasks';
import { itemOptions } from '../../tasks/options';
import { outOf, outOption, parseOne, runOf, runOptions, usage, usageOf, type Verb } from '../arguments';
import { type InputFile, itemsOf, readInput, taskSource } from '../input-files';
import { openJob, plannedJob, readRecipe, type Where } from '../job';
import { publishedTexts, renameTexts } from '../recipe-texts';
import { checkReportPlace, reportWriter, writeWhole } from '../report-file';

type Measured = OptionValues<typeof protocolOptions & typeof searchOptions>;

interface SearchCommand extends Where, Measured {
  recipe: string;
  inputs: InputFile[];
  /** Names of tasks, or paths of files of rows, in place of inputs. */
  tasks?: { names: string[]; metric: string } & ReturnType<typeof itemsOf>;
  out: string;
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

const searching = {
  ...{ ...outOption, ...inputOptions, ...scoredOptions },
  ...{ ...searchOptions, ...protocolOptions, ...runOptions },
};

export const searchVerb: Verb<SearchCommand> = {
  name: 'search',
  usage: `  search <recipe.yml> --out BEST.yml (--text FILE | --tokens IDS.json) … ${usageOf(searchOptions)}
         ${usageOf(protocolOptions)} ${usageOf(runOptions)}
  search <recipe.yml> --out BEST.yml --task NAME[,NAME …] ${usageOf(scoredOptions, 'metric')} [--limit N [--sample-seed S]] ${usageOf(itemOptions, 'fewshot')} …
      Searches for weights, λ and density of a recipe by the perplexity of its merges on texts, the mean of all that are
      given, or by their accuracy on tasks (as for evaluate); the merges are measured and not written. The best recipe
      goes to BEST.yml. What was measured is kept: the same command goes on from there, also with more evaluations.
`,

  options: searching,

  parse(args) {
    const { subject: recipe, options, given } = parseOne('search', 'recipe file', args, searching);
    const out = outOf('search', options, 'BEST.yml, the recipe to write');
    const { window, stride, evaluations, seed, task: names, metric = 'acc' } = options;
    const inputs = [
      ...options.text.map((textFile) => ({ textFile })),
      ...options.tokens.map((tokensFile) => ({ tokensFile })),
    ];
    const [left] = ['task', 'metric', 'limit', 'sample-seed', 'fewshot'].filter((flag) => given.has(flag));
    if (names.length === 0 && left !== undefined) throw usage(`--${left} needs --task NAME.`);
    const tasks = names.length > 0 && { names, metric, ...itemsOf(options) };
    if (tasks && inputs.length > 0) throw usage('search goes by texts or by tasks, not by both.');
    if (!tasks && inputs.length === 0)
      throw usage('search needs --text FILE or --tokens IDS.json, once or more often, or --task NAME.');
    return {
      ...{ recipe, inputs, out, window, stride, evaluations, seed },
      ...(tasks && { tasks }),
      ...runOf(options),
    };
  },

  async run(command, place) {
    const { workingFolder, write } = place;
    const { window, stride, evaluations, seed, engine } = command;
    const file = resolve(workingFolder, command.recipe);
    const out = resolve(workingFolder, command.out);
    await checkReportPlace(out, 'out');
    const writeReport = await reportWriter(command.report, workingFolder);
    const recipe = await readRecipe(file);
    const inputs = [];
    for (const input of command.inputs) inputs.push(await readInput(input, workingFolder));
    const { names, ...asked } = command.tasks ?? { names: [], metric: 'acc', limit: null, fewshot: null };
    const sources: TaskSource[] = [];
    for (const name of names) sources.push(await taskSource(name, workingFolder));
    const tasks = command.tasks && { ...asked, tasks: sources };
    const job = await openJob(recipe, file, place, command);
    if (!(await plannedJob(job, place)).clean) return 1;
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
    await writeReport(report);
    await write(`${searchText(report, command.tasks?.metric)}\n`);
    return 0;
  },
};

/**
 * The report in a few lines.
 * @param metric of tasks, where the search went by them
 */
function searchText({ points, best, reused, seconds }: SearchReport, metric?: string): string {
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
