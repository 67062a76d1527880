/** Planners that look at the original once: which layers go, by block influence or by angular distance. */

import { AmalgamError } from '../errors';
import type { DepthTarget } from '../reports/collapse';
import { isInRange } from '../reports/option';
import { targetOptions } from './options';

/** How many layers a target means, 0 for none; at least one layer stays. @throws AmalgamError `Usage` */
export function layersToRemove(target: DepthTarget, layers: number): number {
  const count = 'remove' in target ? target.remove : Math.round(target.ratio * layers);
  const isMeant =
    'remove' in target
      ? isInRange(targetOptions.remove, count)
      : isInRange(targetOptions.ratio, target.ratio);
  if (!isMeant || count >= layers) {
    const said = 'remove' in target ? `${target.remove} layers` : `a share of ${target.ratio}`;
    throw new AmalgamError(
      'Usage',
      `Cannot remove ${said} of ${layers}.`,
      `Give a number from 1 to ${layers - 1}, or a share between 0 and 1.`,
    );
  }
  return count;
}

/**
 * ShortGPT (Men et al. 2024): the layers of least block influence, of equal ones the lower.
 * @param first the lowest layer that may go
 * @returns ascending; empty where none is below the threshold
 */
export function leastInfluential(
  influence: readonly number[],
  target: DepthTarget | { threshold: number },
  first: number,
): number[] {
  const layers = influence.map((value, layer) => ({ value, layer })).slice(first);
  if ('threshold' in target) {
    const below = layers.filter(({ value }) => value < target.threshold);
    if (below.length === influence.length) throw allBelow(target.threshold);
    return below.map(({ layer }) => layer);
  }
  const count = layersToRemove(target, influence.length);
  return layers
    .sort((a, b) => a.value - b.value || a.layer - b.layer)
    .slice(0, count)
    .map(({ layer }) => layer)
    .sort((a, b) => a - b);
}

/**
 * Gromov et al. 2024, as PruneMe does it: the n consecutive layers l … l + n − 1 over which the stream turns least,
 * d(l, n) = [l][l + n]. Layer 0 stays: PruneMe leaves the embedding's output out. With a threshold the longest block
 * within it.
 * @param distance (layers + 1)² map
 * @returns ascending; empty where no block is within the threshold
 */
export function straightestBlock(
  distance: readonly (readonly number[])[],
  target: DepthTarget | { threshold: number },
): number[] {
  const layers = distance.length - 1;
  const best = (count: number) => {
    let found = { begin: 0, value: Number.POSITIVE_INFINITY };
    for (let begin = 1; begin + count <= layers; begin++) {
      const value = distance[begin]![begin + count]!;
      if (value < found.value) found = { begin, value };
    }
    return found;
  };
  const block = (begin: number, count: number) => Array.from({ length: count }, (_, i) => begin + i);
  if ('threshold' in target) {
    for (let count = layers - 1; count > 0; count--) {
      const { begin, value } = best(count);
      if (value <= target.threshold) return block(begin, count);
    }
    return [];
  }
  const count = layersToRemove(target, layers);
  return block(best(count).begin, count);
}

function allBelow(threshold: number): AmalgamError {
  return new AmalgamError(
    'Usage',
    `The block influence of every layer is below ${threshold}; all would go.`,
    'Choose a lower threshold.',
  );
}
