/** Which layers go, of a model that was measured once: by block influence or by angular distance. Pure. */

import { AmalgamError, errorReport } from '../../errors';
import { counted } from '../../formats/quantity';
import { type CollapseSettings, variantOf } from './options';
import type { LayerMeasure } from './report';

/**
 * Number of layers, or experts, to remove; null where none is set.
 * @throws AmalgamError `Usage` unless at least one stays
 */
export function layersToRemove(
  { remove, ratio }: CollapseSettings,
  layers: number,
  what = 'layer',
): number | null {
  if (remove === undefined && ratio === undefined) return null;
  const count = remove ?? Math.round(ratio! * layers);
  if (count >= layers) {
    const said = remove === undefined ? `a share of ${ratio}` : `${counted(remove, what)}`;
    throw new AmalgamError(
      'Usage',
      `Cannot remove ${said} of ${layers}.`,
      `Give a number from 1 to ${layers - 1}, or a share between 0 and 1.`,
    );
  }
  if (count === 0)
    throw nothing(`The target removes less than half ${what === 'layer' ? 'a layer' : 'an expert'}`);
  return count;
}

/**
 * Refuses what cannot be meant for a model of so many layers.
 * @throws AmalgamError `Usage`, `NothingToCollapse`
 */
export function checkSettings(settings: CollapseSettings, layers: number): void {
  if (layers < 2 && settings.planner !== 'experts') {
    throw new AmalgamError(
      'NothingToCollapse',
      'The model has a single layer, so there is nothing to do.',
      'Choose a deeper model.',
    );
  }
  if (settings.planner !== 'experts') layersToRemove(settings, layers);
  if (settings.planner === 'laco') checkLoop(settings, layers);
  checkTarget(settings);
}

/** How much is to go, whatever the model. @throws AmalgamError `Usage` */
export function checkTarget({ planner, remove, ratio, threshold, variant }: CollapseSettings): void {
  if (variant === (planner === 'experts' ? 'rdsc' : 'mean')) {
    throw new AmalgamError(
      'Usage',
      `The variant ${variant} is not for the planner ${planner}.`,
      'rdsc is for layers, mean for experts; drop is for both.',
    );
  }
  if (planner === 'experts' && threshold !== undefined) {
    throw new AmalgamError(
      'Usage',
      'A threshold is not for experts.',
      'Give a number of experts, or a share.',
    );
  }
  if (planner === 'laco') {
    if (threshold === undefined) return;
    throw new AmalgamError(
      'Usage',
      'A threshold is for the planners influence and angular.',
      'Give the greedy search a similarity.',
    );
  }
  if ([remove, ratio, threshold].filter((target) => target !== undefined).length === 1) return;
  throw new AmalgamError(
    'Usage',
    `The planner ${planner} needs to know how much is to go.`,
    'Give exactly one: a number, a share, or (of layers) a threshold.',
  );
}

/** Why settings cannot be meant for a model of so many layers, in words; null where they can. */
export function settingsProblem(settings: CollapseSettings, layers: number): string | null {
  try {
    checkSettings(settings, layers);
    return null;
  } catch (thrown) {
    const { message, hint } = errorReport(thrown);
    return `${message} ${hint}`;
  }
}

/** Whether a block fits between the layers of the greedy loop. */
function checkLoop(settings: CollapseSettings, layers: number): void {
  const { block, lowest, highest = layers - 1 } = settings;
  if (highest >= layers) {
    throw new AmalgamError(
      'Usage',
      `The highest layer is ${highest}, and the model has ${counted(layers, 'layer')}.`,
      `Layers are counted from 0 to ${layers - 1}.`,
    );
  }
  if (highest - block >= lowest) return;
  throw new AmalgamError(
    'Usage',
    `No block of ${counted(block, 'layer')} fits: the loop begins at layer ${highest} − ${block} = ${highest - block}, which is below the lowest, ${lowest}.`,
    'Choose smaller blocks, or a wider range of layers.',
  );
}

/**
 * The layers that go, ascending; empty where none is within the threshold.
 * @throws AmalgamError `Usage`, `NothingToCollapse`
 */
export function chooseLayers(settings: CollapseSettings, { influence, distance }: LayerMeasure): number[] {
  const target = layersToRemove(settings, influence.length) ?? { threshold: settings.threshold! };
  if (settings.planner === 'angular') return straightestBlock(distance, target);
  // a layer that is folded needs one before it
  return leastInfluential(influence, target, variantOf(settings) === 'drop' ? 0 : 1);
}

/**
 * ShortGPT (Men et al. 2024): the layers of least block influence, of equal ones the lower.
 * @param first the lowest layer that may go
 */
function leastInfluential(
  influence: readonly number[],
  target: number | { threshold: number },
  first: number,
): number[] {
  const layers = influence.map((value, layer) => ({ value, layer })).slice(first);
  if (typeof target !== 'number') {
    const below = layers.filter(({ value }) => value < target.threshold);
    if (below.length === influence.length) throw allBelow(target.threshold);
    return below.map(({ layer }) => layer);
  }
  return layers
    .sort((a, b) => a.value - b.value || a.layer - b.layer)
    .slice(0, target)
    .map(({ layer }) => layer)
    .sort((a, b) => a - b);
}

/**
 * Gromov et al. 2024, as PruneMe does it: the n consecutive layers l … l + n − 1 over which the stream changes direction least,
 * d(l, n) = [l][l + n]. Layer 0 stays: PruneMe leaves the embedding's output out. With a threshold the longest block
 * within it.
 * @param distance (layers + 1)² map
 */
function straightestBlock(
  distance: readonly (readonly number[])[],
  target: number | { threshold: number },
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
  if (typeof target === 'number') return block(best(target).begin, target);
  for (let count = layers - 1; count > 0; count--) {
    const { begin, value } = best(count);
    if (value <= target.threshold) return block(begin, count);
  }
  return [];
}

/** `1, 3 to 5 and 9` */
export function layerWords(layers: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const layer of layers) {
    const run = runs.at(-1);
    if (run && run[1] === layer - 1) run[1] = layer;
    else runs.push([layer, layer]);
  }
  const words = runs.flatMap(([a, b]) =>
    b > a + 1 ? [`${a} to ${b}`] : b > a ? [`${a}`, `${b}`] : [`${a}`],
  );
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${words.at(-1)}` : (words[0] ?? 'none');
}

export function nothing(why: string): AmalgamError {
  return new AmalgamError(
    'NothingToCollapse',
    `${why}, so there is nothing to do.`,
    'Choose a lower similarity, a larger target, or another variant.',
  );
}

function allBelow(threshold: number): AmalgamError {
  return new AmalgamError(
    'Usage',
    `The block influence of every layer is below ${threshold}; all would go.`,
    'Choose a lower threshold.',
  );
}
