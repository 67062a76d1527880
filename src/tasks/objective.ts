/** Tasks as what merges are compared by. */
import { AmalgamError } from '../errors';
import { TEXT_PARTS, type TextPart } from '../reports/find-best';
import type { LossBlock } from '../reports/paired-error';
import type { ScoredModel, TaskInfo, TaskItem } from '../reports/tasks';
import { mainMetric } from './metrics';

/** So small that accuracies decide, and equal ones do not leave a search without a slope. */
const TIE = 1e-6;

/**
 * Losses of a model on tasks, item by item, dealt out into the parts of the text: 1 − the metric, to tune on less the right
 * answers' share of the probability, a millionth of its logarithm.
 * @throws AmalgamError `Usage` for a task without the metric
 */
export function taskBlocks(
  info: readonly TaskInfo[],
  outcomes: ScoredModel['tasks'],
  metric?: string,
): Record<TextPart, LossBlock[][]> {
  const without = info.find(({ metrics }) => metric !== undefined && !metrics.includes(metric));
  if (without) {
    throw new AmalgamError(
      'Usage',
      `The task ${without.task} has no ${metric}.`,
      `It has ${without.metrics.join(', ')}; all tasks must have the same metric.`,
    );
  }
  const blocksOf = (part: TextPart) =>
    outcomes.map((outcome, t) =>
      ('score' in outcome ? outcome.score.items : []).flatMap((item, i): LossBlock[] => {
        if (item.refused !== undefined || TEXT_PARTS[i % TEXT_PARTS.length] !== part) return [];
        const slope = part === 'tuning' ? TIE * rightLogShare(item) : 0;
        return [{ loss: 1 - item.values[metric ?? mainMetric(info[t]!.metrics)]! - slope, tokens: 1 }];
      }),
    );
  const blocks = {
    tuning: blocksOf('tuning'),
    choosing: blocksOf('choosing'),
    reporting: blocksOf('reporting'),
  };
  return blocks;
}

/** @throws AmalgamError `TaskInvalid` for a task with too few rows for all parts */
export function requireAllParts(info: readonly TaskInfo[], blocks: ReturnType<typeof taskBlocks>): void {
  for (const [t, { task }] of info.entries()) {
    if (Object.values(blocks).every((part) => part[t]!.length > 0)) continue;
    throw new AmalgamError(
      'TaskInvalid',
      `Of ${task} too few rows could be asked to tune on some, to choose on others and to report on others still.`,
      'Raise the limit, or take a task with more rows.',
    );
  }
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
