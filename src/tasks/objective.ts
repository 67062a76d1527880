/** Tasks as the objective of a search. */
import { AmalgamError } from '../errors';
import { mean } from '../linalg/numbers';
import type { TaskObjective } from '../reports/search';
import type { ScoredModel, TaskInfo, TaskItem } from '../reports/tasks';

/**
 * Objective of a model on tasks: the mean of a metric over the tasks, every task counting the same, with its standard error.
 * @returns undefined where one of the tasks was not scored, or has no item that counts
 * @throws AmalgamError `Usage` for a task without the metric
 */
export function taskObjective(
  info: readonly TaskInfo[],
  outcomes: ScoredModel['tasks'],
  metric: string,
): TaskObjective | undefined {
  const without = info.find(({ metrics }) => !metrics.includes(metric));
  if (without) {
    throw new AmalgamError(
      'Usage',
      `The task ${without.task} has no ${metric}.`,
      `It has ${without.metrics.join(', ')}; all tasks of a search must have the same metric.`,
    );
  }
  const found = outcomes.flatMap((outcome) => {
    if ('error' in outcome) return [];
    const { metrics, items } = outcome.score;
    const counted = items.filter(({ refused }) => refused === undefined);
    const value = metrics[metric];
    return value && counted.length > 0 ? [{ ...value, share: mean(counted.map(rightLogShare)) }] : [];
  });
  if (found.length < info.length) return undefined;
  const errors = found.map(({ stderr }) => stderr);
  const known = errors.flatMap((stderr) => stderr ?? []);
  return {
    value: mean(found.map(({ value }) => value)),
    stderr: known.length < errors.length ? null : Math.hypot(...known) / known.length,
    rightLogShare: mean(found.map(({ share }) => share)),
  };
}

/** ln of the share of the choices' probability that the right ones have; of an item without choices its ln p. */
function rightLogShare({ target, loglikelihoods }: TaskItem): number {
  const top = Math.max(...loglikelihoods);
  if (target === null) return loglikelihoods.reduce((a, b) => a + b, 0);
  const shares = loglikelihoods.map((ll) => Math.exp(ll - top));
  const right = shares[target] ?? 0;
  // a right answer beyond all others' reach still has a slope
  return Math.log(Math.max(right, Number.MIN_VALUE) / shares.reduce((a, b) => a + b, 0));
}
