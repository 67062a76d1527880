import { readdir } from 'node:fs/promises';
import { basename, dirname, join, parse, resolve } from 'node:path';
import process from 'node:process';
import { formatLeft } from '../../formats/quantity';
import { copyOf, type Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { bestOptions, searchOptions } from '../../recipe/options';
import { BEST_STEPS, type BestRow, frontOf } from '../../reports/find-best';
import type { TaskSource } from '../../reports/tasks';
import { itemOptions } from '../../tasks/options';
import { defineVerb, runOptions, usage } from '../arguments';
import { bestRowText, bestText } from '../best-text';
import { itemsOf, readInput, taskSource } from '../input-files';
import { openJob, plannedJob, readRecipe } from '../job';
import { publishedTexts, renameTexts } from '../recipe-texts';
import { checkReportPlace, reportWriter, writeWhole } from '../report-file';

export const searchVerb = defineVerb({
  name: 'search',
  subjects: ['recipe.yml'],
  about:
    'Finds the best merge of a recipe’s models: methods that read no text at their own λ (those that never came near the best are left out), then Gram merges, then weights, t, λ and density around the best, gradients and filters times a factor; on texts, on tasks (as for evaluate), or on text that the contributors generate. One part of it is tuned on, one compared on; of a third are the figures of the models, the winner and what may be as good. Nothing is merged; the best recipe goes to BEST.yml. What was measured is kept: the same command, with another --out and --report, goes on from there with as much time again.',
  options: {
    out: {
      kind: 'text',
      argument: 'BEST.yml',
      help: 'Where the recipe of the best is written; those of a front beside it, as BEST-1.yml and on.',
    },
    steps: { kind: 'list', argument: BEST_STEPS.join(','), help: 'What is tried; all of it unless said.' },
    text: { kind: 'list', whole: true, argument: 'FILE', help: 'A text to measure on.' },
    tokens: { kind: 'list', whole: true, argument: 'IDS.json', help: 'A text as token ids.' },
    task: { kind: 'list', argument: 'NAME', help: 'Tasks that ship, or files of rows.' },
    metric: {
      kind: 'text',
      argument: 'acc',
      help: 'The metric whose mean over the tasks counts; without, each task’s first accuracy.',
    },
    ...itemOptions,
    ...bestOptions,
    ...searchOptions,
    ...runOptions,
  },
  belongs: { task: ['metric', 'limit', 'fewshot'], limit: ['sampleSeed'] },

  check({ options: { steps, task, text, tokens } }) {
    const unknown = steps.find((step) => !BEST_STEPS.some((known) => known === step));
    if (unknown !== undefined) throw usage(`--steps has ${unknown}; it is some of ${BEST_STEPS.join(', ')}.`);
    if (task.length > 0 && text.length + tokens.length > 0) {
      throw usage('search goes by texts or by tasks, not by both.');
    }
  },

  async run({ subjects: [named = ''], options }, place) {
    const { workingFolder, write } = place;
    const { budget, seed, engine, metric, front, layers, kinds } = options;
    const steps = BEST_STEPS.filter((step) => options.steps.length === 0 || options.steps.includes(step));
    const file = resolve(workingFolder, named);
    const out = options.out === undefined ? undefined : resolve(workingFolder, options.out);
    if (out !== undefined) await checkReportPlace(out, 'out');
    if (out !== undefined && front !== undefined)
      for (const taken of await numberedBeside(out)) await checkReportPlace(taken, 'out');
    const writeReport = await reportWriter(options.report, workingFolder);
    const recipe = await readRecipe(file);
    const texts = [];
    for (const name of options.text) {
      texts.push({ name: basename(name), input: await readInput({ textFile: name }, workingFolder) });
    }
    for (const name of options.tokens) {
      texts.push({ name: basename(name), input: await readInput({ tokensFile: name }, workingFolder) });
    }
    const sources: TaskSource[] = [];
    for (const name of options.task) sources.push(await taskSource(name, workingFolder));
    const tasks = sources.length > 0 && {
      ...itemsOf(options),
      ...(metric !== undefined && { metric }),
      tasks: sources,
    };
    const job = await openJob(recipe, file, place, options);
    if (!(await plannedJob(job, place)).clean) return 1;
    const report = await job.calls.findBest(
      {
        recipe: job.recipe,
        texts,
        ...(tasks && { tasks }),
        steps,
        budget,
        seed,
        engine,
        shape: { ...(layers && { layers }), kinds },
        ...(front && { front }),
      },
      ({ rows, secondsLeft }) => {
        const left = formatLeft(secondsLeft);
        for (const row of rows)
          process.stderr.write(`${[bestRowText(row), left].filter(Boolean).join(' · ')}\n`);
      },
    );
    if (out !== undefined) {
      const front = options.front === undefined ? [] : frontOf(report.rows);
      const best = report.rows.find(({ id }) => id === report.best)!;
      await writeWhole(out, formatRecipe(inOwnNames(best, recipe, job.recipe)));
      for (const [i, row] of front.entries()) {
        await writeWhole(numbered(out, i + 1), formatRecipe(inOwnNames(row, recipe, job.recipe)));
      }
    }
    await writeReport(report);
    await write(`${bestText(report)}\n`);
    return 0;
  },
});

/** `best.yml` as `best-1.yml`. */
function numbered(file: string, number: number): string {
  const { dir, name, ext } = parse(file);
  return join(dir, `${name}-${number}${ext}`);
}

/** Files that stand where recipes of a front may go. */
async function numberedBeside(file: string): Promise<string[]> {
  const { dir, name } = parse(file);
  return (await readdir(dirname(file)))
    .filter((own) => join(dir, own) === numbered(file, Number.parseInt(own.slice(name.length + 1), 10)))
    .map((own) => join(dir, own));
}

/** The recipe of a row, models and texts by the names that the person's recipe has for them. */
function inOwnNames({ target }: BestRow, recipe: Recipe, opened: Recipe): Recipe {
  const found = 'recipe' in target ? target.recipe : copyOf(target.model);
  const shortNames = new Map([...publishedTexts(recipe)].map(([name, short]) => [short, name]));
  const { mergeMethod, baseModel, parameters, models = [] } = renameTexts(found, shortNames);
  const namesOf = (of: Recipe) => [of.baseModel, ...(of.models ?? []).map(({ model }) => model)];
  const [given, known] = [namesOf(recipe), namesOf(opened)];
  const nameOf = (model: string) => given[known.indexOf(model)] ?? model;
  const { baseModel: _, ...rest } = recipe;
  const named = models.map((entry) => ({ ...entry, model: nameOf(entry.model) }));
  const base = baseModel === undefined ? {} : { baseModel: nameOf(baseModel) };
  return { ...rest, ...base, mergeMethod, parameters, models: named };
}
