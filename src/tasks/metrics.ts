/** Metrics of items and of tasks, as lm-evaluation-harness 0.4.13 computes them (`process_results`, `api/metrics.py`). */

import { argmax } from '../linalg/numbers';
import { meanLoss } from '../reports/paired-error';
import type { MetricValue, TaskItem } from '../reports/tasks';
import { codePoints } from './python';
import type { Task } from './task';
import type { Item } from './task-items';

/** An item out of the answer that a model wrote. */
export function scoreWritten({ docId, written }: Item, answer: string): TaskItem {
  const { checks, values } = written!;
  const none = { target: null, loglikelihoods: [], isGreedy: [] };
  return { docId, ...none, written: answer, ...(checks && { checks }), values: values(answer) };
}

/** One request's answer. */
interface Answer {
  loglikelihood: number;
  isGreedy: boolean;
}

/** An item out of its answers, one for each request. */
export function scoreItem({ metrics }: Task, item: Item, answers: readonly Answer[]): TaskItem {
  const loglikelihoods = answers.map(({ loglikelihood }) => loglikelihood);
  const all: Record<string, () => number> =
    item.choices.length > 0
      ? choice(item, loglikelihoods)
      : { perplexity: () => loglikelihoods[0]!, acc: () => (answers[0]!.isGreedy ? 1 : 0) };
  return {
    docId: item.docId,
    target: item.target,
    loglikelihoods,
    isGreedy: answers.map(({ isGreedy }) => isGreedy),
    values: Object.fromEntries(metrics.map((metric) => [metric, all[metric]!()])),
  };
}

function choice({ choices, target, labels }: Item, lls: readonly number[]): Record<string, () => number> {
  const right = (by: (text: string) => number) => {
    const best = argmax(lls.map((ll, i) => ll / by(choices[i]!)));
    return target === best ? 1 : 0;
  };
  return {
    acc: () => (labels ? trueShare(lls, labels) : right(() => 1)),
    acc_norm: () => right(codePoints),
  };
}

/** The share of the choices' probability that the true ones have (TruthfulQA mc2). */
function trueShare(lls: readonly number[], labels: readonly number[]): number {
  const top = Math.max(...lls);
  const shares = lls.map((ll) => Math.exp(ll - top));
  const all = shares.reduce((a, b) => a + b, 0);
  return shares.reduce((sum, share, i) => sum + (labels[i] === 1 ? share : 0), 0) / all;
}

/** The metrics of a task over the items that count. */
export function aggregate(
  metrics: readonly string[],
  items: readonly TaskItem[],
): Record<string, MetricValue> {
  const counted = items.filter(({ refused }) => refused === undefined);
  if (counted.length === 0) return {};
  return Object.fromEntries(metrics.map((metric) => [metric, summarize(metric, counted)]));
}

function summarize(metric: string, items: readonly TaskItem[]): MetricValue {
  const { mean, stderr } = meanLoss([
    items.map(({ values, checks = 1 }) => {
      const tokens = metric.startsWith('inst_level') ? checks : 1;
      return { loss: values[metric]! * tokens, tokens };
    }),
  ]);
  if (metric !== 'perplexity') return { value: mean, stderr };
  const value = Math.exp(-mean);
  // to first order: the harness draws 100 000 bootstrap samples for the same
  return { value, stderr: stderr === null ? null : value * stderr };
}

/** The accuracy of a task, or else its first metric. */
export function mainMetric(metrics: readonly string[]): string {
  return metrics.includes('acc') ? 'acc' : metrics[0]!;
}
