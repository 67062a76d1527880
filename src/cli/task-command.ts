import type { BackendChoice } from '../reports/backend';
import { engineOption, numberOption, parseSome, usage, whereOptions } from './arguments';

/** `evaluate` on tasks. Paths are as typed. */
export interface TaskCommand {
  verb: 'evaluate';
  /** Model references, or paths of recipes whose merges are scored without being written. */
  models: string[];
  /** Names of tasks that ship, or paths of task files. */
  tasks: string[];
  limit: number | null;
  sampleSeed?: number;
  fewshot: number | null;
  fewshotSeed?: number;
  engine: BackendChoice;
  report?: string;
  /** README.md of the first model, to say what it scored. */
  card?: string;
  hub?: string;
  cache?: string;
}

export const TASK_USAGE = `  evaluate <model> … --task NAME[,NAME …] [--limit N [--sample-seed S]] [--fewshot K] [--fewshot-seed 1234]
           [--report FILE.json] [--card README.md] [--engine auto|webgpu|cpu] [--hub URL] [--cache DIR]
      Accuracy on tasks as lm-evaluation-harness scores them, of one or more models and recipes; with several, whether
      each is better than the first (paired test). NAME is hellaswag, arc_easy, arc_challenge, piqa, winogrande, boolq,
      openbookqa, lambada_openai, mmlu_<subset>, truthfulqa_mc1, truthfulqa_mc2, sample_trades, or a file: a task in YAML,
      or a .jsonl of question, choices and answer. --limit takes the first items, or some drawn by --sample-seed.
      --card puts the first model's results into the front matter of its model card (model-index).
`;

/** @throws Usage */
export function parseTasks(args: string[]): TaskCommand {
  const { subjects: models, options } = parseSome('evaluate', 'model', args, {
    task: { type: 'string', multiple: true },
    limit: { type: 'string' },
    'sample-seed': { type: 'string' },
    fewshot: { type: 'string' },
    'fewshot-seed': { type: 'string' },
    report: { type: 'string' },
    card: { type: 'string' },
    engine: { type: 'string' },
    hub: { type: 'string' },
    cache: { type: 'string' },
  });
  const tasks = (options.task as string[]).flatMap((list) => list.split(',')).filter((name) => name !== '');
  if (tasks.length === 0) throw usage('--task is empty; it names a task such as hellaswag.');
  const { limit, fewshot, engine = 'auto', report, card } = options;
  if (options['sample-seed'] !== undefined && limit === undefined) {
    throw usage('--sample-seed belongs to --limit.');
  }
  const seed = (name: string) =>
    options[name] === undefined ? undefined : numberOption(name, options[name], 0, 0, true);
  const sampleSeed = seed('sample-seed');
  const fewshotSeed = seed('fewshot-seed');
  return {
    verb: 'evaluate',
    models,
    tasks,
    limit: limit === undefined ? null : numberOption('limit', limit, 1, 1, true),
    fewshot: fewshot === undefined ? null : numberOption('fewshot', fewshot, 0, 0, true),
    ...(sampleSeed === undefined ? {} : { sampleSeed }),
    ...(fewshotSeed === undefined ? {} : { fewshotSeed }),
    engine: engineOption(engine),
    ...(typeof report === 'string' ? { report } : {}),
    ...(typeof card === 'string' ? { card } : {}),
    ...whereOptions(options),
  };
}
