/** What `evaluate` found, in lines. */
import { formatSeconds } from '../formats/quantity';
import type { EvaluateManyReport } from '../reports/evaluate';
import type { ScoreTasksReport } from '../reports/tasks';
import { comparisons } from '../tasks/harness-report';
import { columns } from './print';

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
    const { perplexity, meanNll, tokens, leftOut } = outcome.report;
    const without = leftOut ? ` (${leftOut} conversations refused by its chat template)` : '';
    return [mark, names[i]!, perplexity.toFixed(4), meanNll.toFixed(5), `${tokens}${without}`];
  });
  const table = columns([['', 'model', 'perplexity', 'mean loss', 'tokens'], ...rows]);
  return [...table, '', `${formatSeconds(seconds)} in all`].join('\n');
}

/** A line for each model, task and metric, and one for each comparison with the first model. */
export function scoresText(report: ScoreTasksReport, names: readonly string[]): string {
  const rows = report.models.flatMap((model, m) =>
    report.tasks.flatMap(({ task, fewshot, effective }, t) => {
      const outcome = model.tasks[t];
      const head = [names[m]!, task, `${fewshot}`];
      if (!outcome || 'error' in outcome)
        return [[...head, outcome?.error.message ?? 'not scored', '', '', '']];
      const refused = outcome.score.items.filter((item) => item.refused !== undefined).length;
      const items = refused > 0 ? `${effective - refused} (${refused} refused)` : `${effective}`;
      return Object.entries(outcome.score.metrics).map(([metric, { value, stderr }]) => [
        ...head,
        metric,
        value.toFixed(4),
        stderr === null ? '' : `± ${stderr.toFixed(4)}`,
        items,
      ]);
    }),
  );
  const times = report.models.map(
    ({ tokens, seconds }, m) =>
      `${names[m]}: ${tokens} tokens in ${seconds.toFixed(1)} s${seconds > 0 ? `, ${Math.round(tokens / seconds)} tokens/s` : ''}`,
  );
  const tests = comparisons(report).map(
    ({ task, metric, a, b, difference, onlyA, onlyB, items, p, test }) =>
      `${names[b]} against ${names[a]} on ${task}, ${metric}: ${difference >= 0 ? '+' : ''}${difference.toFixed(4)}` +
      (test === 'mcnemar'
        ? `; right in ${names[b]} alone: ${onlyB}, in ${names[a]} alone: ${onlyA} of the items (McNemar’s exact test`
        : ` over ${items} items (paired bootstrap`) +
      `, p = ${p.toPrecision(3)})`,
  );
  const table = columns([['model', 'task', 'shots', 'metric', 'value', 'stderr', 'items'], ...rows]);
  return [...table, '', ...times, ...(tests.length > 0 ? ['', ...tests] : [])].join('\n');
}
