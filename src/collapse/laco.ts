/**
 * LaCo's greedy loop (Yang et al. 2024, algorithm 1; as in the official notebook): from the top down, a block becomes
 * one layer when the model that results still says nearly what the original says.
 */

import { AmalgamError } from '../errors';
import type { CollapseStep } from '../reports/collapse';
import { isInRange } from '../reports/option';
import { lacoOptions } from './options';
import { type CollapseKind, collapseAt, type Stack, wholeStack } from './stack';

export interface LacoSettings {
  /** Layers that become one. */
  block: number;
  lowest: number;
  highest: number;
  interval: number;
  threshold: number;
  /** Layers that stay in any case. */
  least: number;
}

/** @throws AmalgamError `Usage` when no block of that size fits, or a setting cannot be meant */
export function checkLaco(
  { block, lowest, highest, interval, threshold }: LacoSettings,
  layers: number,
): void {
  if (
    !isInRange(lacoOptions.block, block) ||
    !isInRange(lacoOptions.interval, interval) ||
    !isInRange(lacoOptions.lowest, lowest) ||
    !isInRange(lacoOptions.highest, highest) ||
    highest >= layers ||
    !(threshold >= -1 && threshold < 1)
  ) {
    throw new AmalgamError(
      'Usage',
      `Blocks of ${block} between the layers ${lowest} and ${highest} of ${layers}, interval ${interval}, threshold ${threshold}: these settings are not valid.`,
      `Layers are counted from 0 to ${layers - 1}; a block has 2 layers or more, an interval is 1 or more, a threshold from -1 to below 1.`,
    );
  }
  if (highest - block >= lowest) return;
  throw new AmalgamError(
    'Usage',
    `No block of ${block} layers fits: the loop begins at layer ${highest} − ${block} = ${highest - block}, which is below the lowest, ${lowest}.`,
    'Choose smaller blocks, or a wider range of layers.',
  );
}

/**
 * Runs the loop. With l = highest − C at first: K = min(C − 1, layers behind l); the block l … l + K is collapsed when
 * similarity > threshold, and l goes down by `interval`, else by 1. Below l the model is always the original. (The
 * notebook also sets l back when it lies behind the end, which cannot be: l + K is a layer of the model.)
 *
 * @param similarity of a candidate to the original, null where it is not finite; layers below `from` are the original's
 */
export async function collapseGreedily(
  layers: number,
  settings: LacoSettings,
  kind: CollapseKind,
  similarity: (candidate: Stack, from: number) => Promise<number | null>,
  onStep?: (step: CollapseStep) => void,
): Promise<{ stack: Stack; steps: CollapseStep[] }> {
  checkLaco(settings, layers);
  const { block, lowest, highest, interval, threshold, least } = settings;
  const steps: CollapseStep[] = [];
  let stack = wholeStack(layers);
  for (let l = highest - block; l >= lowest && stack.length > least; ) {
    const count = Math.min(block - 1, stack.length - 1 - l, stack.length - least);
    if (count <= 0) {
      l--;
      continue;
    }
    const candidate = collapseAt(stack, l, count, kind);
    const found = await similarity(candidate, l);
    const accepted = found !== null && found > threshold;
    if (accepted) stack = candidate;
    const step = { layer: l, count, similarity: found, accepted, layers: stack.length };
    steps.push(step);
    onStep?.(step);
    l -= accepted ? interval : 1;
  }
  return { stack, steps };
}
