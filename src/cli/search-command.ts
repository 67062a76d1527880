/** The command line of `search`. */
import type { BackendChoice } from '../reports/backend';
import { engineOption, numberOption, parseOne, usage, whereOptions } from './arguments';
import type { InputFile } from './input-files';

export interface SearchCommand {
  verb: 'search';
  recipe: string;
  inputs: InputFile[];
  /** Names of tasks, or paths of task files, in place of inputs. */
  tasks?: {
    names: string[];
    metric: string;
    limit: number | null;
    sampleSeed?: number;
    fewshot: number | null;
  };
  window: number;
  stride: number;
  evaluations: number;
  seed: number;
  out: string;
  report?: string;
  hub?: string;
  cache?: string;
  engine: BackendChoice;
}

export const SEARCH_USAGE = `  search <recipe.yml> --out BEST.yml (--text FILE | --tokens IDS.json) … [--evaluations 60] [--seed 0]
         [--window 256] [--stride 128] [--report FILE.json] [--engine auto|webgpu|cpu] [--hub URL] [--cache DIR]
  search <recipe.yml> --out BEST.yml --task NAME[,NAME …] [--metric acc] [--limit N [--sample-seed S]] [--fewshot K] …
      Searches for weights, λ and density of a recipe by the perplexity of its merges on texts, the mean of all that are
      given, or by their accuracy on tasks (as for evaluate); the merges are measured and not written. The best recipe
      goes to BEST.yml. What was measured is kept: the same command goes on from there, also with more evaluations.
`;

/** @throws Usage */
export function parseSearch(args: string[]): SearchCommand {
  const { subject: recipe, options } = parseOne('search', 'recipe file', args, {
    out: { type: 'string' },
    text: { type: 'string', multiple: true },
    tokens: { type: 'string', multiple: true },
    task: { type: 'string', multiple: true },
    metric: { type: 'string' },
    limit: { type: 'string' },
    'sample-seed': { type: 'string' },
    fewshot: { type: 'string' },
    evaluations: { type: 'string' },
    seed: { type: 'string' },
    window: { type: 'string' },
    stride: { type: 'string' },
    report: { type: 'string' },
    engine: { type: 'string' },
    hub: { type: 'string' },
    cache: { type: 'string' },
  });
  const { out, report, engine = 'auto' } = options;
  if (typeof out !== 'string' || out === '') throw usage('search needs --out BEST.yml, the recipe to write.');
  const list = (value: unknown) => (Array.isArray(value) ? value.map(String) : []);
  const inputs: InputFile[] = [
    ...list(options.text).map((textFile) => ({ textFile })),
    ...list(options.tokens).map((tokensFile) => ({ tokensFile })),
  ];
  const tasks = tasksOf(options, list(options.task));
  if (tasks && inputs.length > 0) throw usage('search goes by texts or by tasks, not by both.');
  if (!tasks && inputs.length === 0)
    throw usage('search needs --text FILE or --tokens IDS.json, once or more often, or --task NAME.');
  return {
    verb: 'search',
    recipe,
    inputs,
    ...(tasks ? { tasks } : {}),
    out,
    window: numberOption('window', options.window, 256, 2, true),
    stride: numberOption('stride', options.stride, 128, 1, true),
    evaluations: numberOption('evaluations', options.evaluations, 60, 2, true),
    seed: numberOption('seed', options.seed, 0, 0, true),
    engine: engineOption(engine),
    ...(typeof report === 'string' ? { report } : {}),
    ...whereOptions(options),
  };
}

function tasksOf(options: Record<string, unknown>, lists: readonly string[]): SearchCommand['tasks'] {
  const names = lists.flatMap((list) => list.split(',')).filter((name) => name !== '');
  const { limit, fewshot, metric = 'acc', 'sample-seed': seed } = options;
  if (names.length === 0) {
    const [left] = ['task', 'metric', 'limit', 'sample-seed', 'fewshot'].filter(
      (name) => options[name] !== undefined,
    );
    if (left !== undefined) throw usage(`--${left} needs --task NAME.`);
    return undefined;
  }
  if (seed !== undefined && limit === undefined) throw usage('--sample-seed belongs to --limit.');
  return {
    names,
    metric: String(metric),
    limit: limit === undefined ? null : numberOption('limit', limit, 1, 1, true),
    fewshot: fewshot === undefined ? null : numberOption('fewshot', fewshot, 0, 0, true),
    ...(seed === undefined ? {} : { sampleSeed: numberOption('sample-seed', seed, 0, 0, true) }),
  };
}
