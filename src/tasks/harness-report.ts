/** Scores as lm-evaluation-harness reports them (`results.json`, 0.4.13), and whether models differ. */
import type { CardResult } from '../formats/card-results';
import { meanLoss, verdict } from '../reports/paired-error';
import type { MetricValue, ScoredModel, ScoreTasksReport, TaskInfo, TaskItem } from '../reports/tasks';

const higherIsBetter = (metric: string): boolean => metric !== 'perplexity';

/** Results of one model in the report: the harness's fields. */
interface HarnessResults {
  model: string;
  results: Record<string, Record<string, number | string>>;
  versions: Record<string, number | null>;
  'n-shot': Record<string, number>;
  higher_is_better: Record<string, Record<string, boolean>>;
  'n-samples': Record<string, { original: number; effective: number }>;
  samples: Record<string, HarnessSample[]>;
  errors: Record<string, string>;
  total_evaluation_time_seconds: number;
  tokens: number;
}

interface HarnessSample {
  doc_id: number;
  target: TaskItem['target'];
  /** [log-likelihood, is greedy] of each request; or what was written. */
  filtered_resps: ([number, boolean] | string)[];
  [metric: string]: unknown;
}

/** B against A on the items of a task that both were scored on. */
interface Comparison {
  task: string;
  metric: string;
  a: number;
  b: number;
  items: number;
  /** Mean of b − a, and its standard error. */
  difference: number;
  stderr: number | null;
  /** Outside its error of 95 in 100, or not. */
  verdict: 'better' | 'worse' | 'alike';
}

export function harnessResults(
  model: string,
  scored: ScoredModel,
  tasks: readonly TaskInfo[],
): HarnessResults {
  const each = <T>(of: (info: TaskInfo, index: number) => T): Record<string, T> =>
    Object.fromEntries(tasks.map((info, i) => [info.task, of(info, i)]));
  const outcome = (i: number) => scored.tasks[i];
  const errors = tasks.flatMap(({ task }, i): [string, string][] => {
    const own = outcome(i);
    return own && 'error' in own ? [[task, own.error.message]] : [];
  });
  return {
    model,
    results: each((info, i) => {
      const own = outcome(i);
      const metrics = own && 'score' in own ? own.score.metrics : {};
      return { alias: info.task, sample_len: info.effective, ...fields(metrics) };
    }),
    versions: each(({ version }) => version),
    'n-shot': each(({ fewshot }) => fewshot),
    higher_is_better: each(({ metrics }) => Object.fromEntries(metrics.map((m) => [m, higherIsBetter(m)]))),
    'n-samples': each(({ original, effective }) => ({ original, effective })),
    samples: each((_, i) => {
      const own = outcome(i);
      return own && 'score' in own ? own.score.items.map(sampleOf) : [];
    }),
    errors: Object.fromEntries(errors),
    total_evaluation_time_seconds: scored.seconds,
    tokens: scored.tokens,
  };
}

/** `acc,none` and `acc_stderr,none`: the harness names the filter after the comma; metrics of written answers have theirs. */
function fields(metrics: Record<string, MetricValue>): Record<string, number | string> {
  return Object.fromEntries(
    Object.entries(metrics).flatMap(([named, { value, stderr }]) => {
      const [metric, filter = 'none'] = named.split(',');
      return [
        [`${metric},${filter}`, value],
        [`${metric}_stderr,${filter}`, stderr ?? 'N/A'],
      ];
    }),
  );
}

function sampleOf({
  docId,
  target,
  loglikelihoods,
  isGreedy,
  values,
  refused,
  written,
}: TaskItem): HarnessSample {
  return {
    doc_id: docId,
    target,
    filtered_resps:
      written === undefined ? loglikelihoods.map((ll, i) => [ll, isGreedy[i] ?? false]) : [written],
    ...values,
    ...(refused === undefined ? {} : { refused }),
  };
}

/** A score as a model card has it. @param items how many are counted */
export function cardResult(
  { task, dataset, subset, split, fewshot, original, sampleSeed }: TaskInfo,
  metrics: Readonly<Record<string, MetricValue>>,
  items: number,
): CardResult {
  const [id, revision] = dataset?.split('@') ?? [];
  return {
    ...{ task, split, fewshot, original, sampleSeed },
    dataset: id === undefined ? null : { id, revision: revision ?? 'main', config: subset },
    items,
    metrics: Object.entries(metrics).map(([type, found]) => ({ type, ...found })),
  };
}

/** Every model against the first, task by task and metric by metric, judged as perplexities are (reports/paired-error.ts). */
export function comparisons({ tasks, models }: Pick<ScoreTasksReport, 'tasks' | 'models'>): Comparison[] {
  return models.slice(1).flatMap((_, i) =>
    tasks.flatMap(({ task, metrics }, t) =>
      metrics.flatMap((metric): Comparison[] => {
        const known = new Map(itemsOf(models[0], t).map((item) => [item.docId, item.values[metric]]));
        const losses = itemsOf(models[i + 1], t).flatMap(({ docId, values }) => {
          const [x, y] = [known.get(docId), values[metric]];
          return x === undefined || y === undefined ? [] : [{ loss: x - y, tokens: 1 }];
        });
        if (losses.length === 0) return [];
        const apart = meanLoss([losses]);
        return [
          {
            ...{ task, metric, a: 0, b: i + 1, items: losses.length },
            ...{ difference: -apart.mean, stderr: apart.stderr },
            verdict: ({ lower: 'better', higher: 'worse', alike: 'alike' } as const)[
              verdict(apart, models.length - 1)
            ],
          },
        ];
      }),
    ),
  );
}

function itemsOf(model: ScoredModel | undefined, task: number): readonly TaskItem[] {
  const outcome = model?.tasks[task];
  return outcome && 'score' in outcome ? outcome.score.items : [];
}
