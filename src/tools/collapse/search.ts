/** Search from settings to a stack, with its measurements. */

import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';
import type { Sequence } from '../../forward/chunk';
import type { Runner } from '../../forward/runner';
import { mean } from '../../linalg/numbers';
import { checkSettings, chooseLayers, layersToRemove, nothing } from './choose-layers';
import { expertStack, expertsToKeep, measureExperts } from './experts';
import { measureLayers, measureSteps, type Reference, runReference, similarityTo } from './measures';
import { type CollapseSettings, variantOf } from './options';
import type { CollapseReport, CollapseStep, LayerMeasure, MeasureLayersRequest } from './report';
import { collapseAt, firstChange, removeLayers, type Stack, wholeStack } from './stack';

export interface OpenedStack {
  runner: Runner;
  close(): void;
}

export interface SearchOptions {
  layers: number;
  /** Opens the model of a stack, weights computed as they are read. */
  open(stack: Stack): Promise<OpenedStack>;
  sequences: readonly Sequence[];
  window: number;
  signal?: AbortSignal;
  /** A phase begins: passes of a layer over the sequences, at most. */
  onPhase?(phase: 'measuring' | 'searching', passes: number): void;
  onPass?(): void;
  onCandidate?(step: CollapseStep): void;
}

interface FoundStack {
  stack: Stack;
  steps: CollapseStep[];
  measure: LayerMeasure | null;
  similarity: CollapseReport['similarity'];
  /** Of experts. */
  saliency?: number[][];
}

/** Layers that the greedy loop leaves in any case. @throws AmalgamError `Usage` for a target that cannot be meant */
export function leastLayers(settings: CollapseSettings, layers: number): number {
  const count = layersToRemove(settings, layers);
  return count === null ? 1 : layers - count;
}

/**
 * Finds the layers to collapse.
 * @throws AmalgamError what {@link checkSettings} throws; `NothingToCollapse` when no layer meets the threshold; what
 *   opening and running throw
 */
export async function findStack(settings: CollapseSettings, options: SearchOptions): Promise<FoundStack> {
  const { layers } = options;
  checkSettings(settings, layers);
  if (settings.planner === 'laco') return searchGreedily(settings, options);
  const original = await options.open(wholeStack(layers));
  let stack: Stack;
  let measure: LayerMeasure | null = null;
  let saliency: number[][] | undefined;
  let reference: Reference;
  try {
    if (settings.planner === 'experts') {
      const { runner } = original;
      const { sequences, signal, onPass, onPhase } = options;
      expertsToKeep(settings, runner.architecture);
      onPhase?.('measuring', measureSteps(runner, sequences));
      const measures = await measureExperts(runner, sequences, signal, onPass);
      stack = expertStack(settings, runner.architecture, measures);
      saliency = measures.map((of) => [...(of?.saliency ?? [])]);
    } else {
      measure = await measured(original.runner, options);
      const chosen = chooseLayers(settings, measure);
      if (chosen.length === 0) {
        const what =
          settings.planner === 'influence' ? 'No layer’s block influence' : 'No block’s angular distance';
        throw nothing(`${what} is within the threshold`);
      }
      stack = removeLayers(layers, chosen, variantOf(settings));
    }
    const from = firstChange(stack);
    reference = await referenceOf(original.runner, { lowest: from, highest: from }, 1, options);
  } finally {
    original.close();
  }
  const similarity = await candidateSimilarity(reference, stack, options);
  if (!similarity) {
    throw new AmalgamError(
      'NonFinite',
      'The collapsed model’s numbers are not finite: NaN or infinities appear when it is run.',
      'Choose other layers, or another variant; “rdsc” overflows where layers are not alike.',
    );
  }
  return { stack, steps: [], measure, similarity, ...(saliency && { saliency }) };
}

/** Measures the layers of the original, and the similarity curve where one was asked for. */
export async function measureModel(
  curve: MeasureLayersRequest['curve'],
  options: SearchOptions,
): Promise<{ measure: LayerMeasure; curve?: { layer: number; similarity: number | null }[] }> {
  const { layers } = options;
  if (curve && curve.block > layers) {
    throw new AmalgamError(
      'Usage',
      `Blocks of ${curve.block} of ${counted(layers, 'layer')} are not valid.`,
      `Give a number from 2 to ${layers}.`,
    );
  }
  const places = curve ? layers - curve.block + 1 : 0;
  const original = await options.open(wholeStack(layers));
  let measure: LayerMeasure;
  let reference: Reference | undefined;
  try {
    measure = await measured(original.runner, options);
    if (curve)
      reference = await referenceOf(original.runner, { lowest: 0, highest: places - 1 }, places, options);
  } finally {
    original.close();
  }
  if (!curve || !reference) return { measure };
  const points: { layer: number; similarity: number | null }[] = [];
  for (let layer = 0; layer < places; layer++) {
    const stack = collapseAt(wholeStack(layers), layer, curve.block - 1, curve.variant);
    const found = await candidateSimilarity(reference, stack, options);
    points.push({ layer, similarity: found?.mean ?? null });
  }
  return { measure, curve: points };
}

/**
 * LaCo's greedy loop (Yang et al. 2024, algorithm 1; as in the official notebook): from the top down, a block becomes one
 * layer when the model that results still says nearly what the original says. With l = highest − C at first: K = min(C − 1,
 * layers behind l); the block l … l + K is collapsed when similarity > the setting, and l goes down by `interval`, else by 1.
 * Below l the model is always the original. (The notebook also sets l back when it lies behind the end, which cannot be:
 * l + K is a layer of the model.)
 *
 * @param similarity of a candidate to the original, null where it is not finite; layers below `from` are the original's
 */
export async function collapseGreedily(
  layers: number,
  settings: CollapseSettings,
  similarity: (candidate: Stack, from: number) => Promise<number | null>,
  onStep?: (step: CollapseStep) => void,
): Promise<{ stack: Stack; steps: CollapseStep[] }> {
  const { block, lowest, highest = layers - 1, interval } = settings;
  const least = leastLayers(settings, layers);
  const steps: CollapseStep[] = [];
  let stack = wholeStack(layers);
  for (let l = highest - block; l >= lowest && stack.length > least; ) {
    const count = Math.min(block - 1, stack.length - 1 - l, stack.length - least);
    if (count <= 0) {
      l--;
      continue;
    }
    const candidate = collapseAt(stack, l, count, variantOf(settings));
    const found = await similarity(candidate, l);
    const accepted = found !== null && found > settings.similarity;
    if (accepted) stack = candidate;
    const step = { layer: l, count, similarity: found, accepted, layers: stack.length };
    steps.push(step);
    onStep?.(step);
    l -= accepted ? interval : 1;
  }
  return { stack, steps };
}

async function searchGreedily(settings: CollapseSettings, options: SearchOptions): Promise<FoundStack> {
  const { layers } = options;
  const { block, lowest, highest = layers - 1 } = settings;
  const range = { lowest, highest: highest - block };
  const original = await options.open(wholeStack(layers));
  const reference = await referenceOf(
    original.runner,
    range,
    range.highest - range.lowest + 1,
    options,
  ).finally(() => original.close());
  const found = new Map<Stack, CollapseReport['similarity'] | null>();
  const { stack, steps } = await collapseGreedily(
    layers,
    settings,
    async (candidate) => {
      const similarity = await candidateSimilarity(reference, candidate, options);
      found.set(candidate, similarity);
      return similarity?.mean ?? null;
    },
    options.onCandidate,
  );
  if (!steps.some(({ accepted }) => accepted)) {
    const best = Math.max(...steps.map(({ similarity }) => similarity ?? Number.NEGATIVE_INFINITY));
    const tried = `${steps.length} ${steps.length === 1 ? 'candidate' : 'candidates'}`;
    const said = Number.isFinite(best)
      ? `the most similar of ${tried} reaches ${best.toPrecision(4)}`
      : `none of ${tried} gives finite numbers`;
    throw nothing(`No block stays above the similarity ${settings.similarity}: ${said}`);
  }
  return { stack, steps, measure: null, similarity: found.get(stack)! };
}

async function measured(runner: Runner, options: SearchOptions): Promise<LayerMeasure> {
  const { sequences, window, signal, onPass } = options;
  options.onPhase?.('measuring', measureSteps(runner, sequences));
  return measureLayers(runner, sequences, window, {
    ...(signal && { signal }),
    ...(onPass && { onStep: onPass }),
  });
}

/** Runs the original; the search that follows takes at most so many candidates. */
async function referenceOf(
  runner: Runner,
  range: { lowest: number; highest: number },
  candidates: number,
  options: SearchOptions,
): Promise<Reference> {
  const { sequences, signal, onPass, layers } = options;
  const average = layers - (range.lowest + range.highest) / 2;
  options.onPhase?.('searching', Math.ceil(layers + 1 + candidates * average));
  return runReference(runner, sequences, range, {
    ...(signal && { signal }),
    ...(onPass && { onStep: onPass }),
  });
}

async function candidateSimilarity(
  reference: Reference,
  stack: Stack,
  { open, signal, onPass }: SearchOptions,
): Promise<CollapseReport['similarity'] | null> {
  const { runner, close } = await open(stack);
  try {
    const pass = { ...(signal && { signal }), ...(onPass && { onStep: onPass }) };
    const sequences = await similarityTo(reference, runner, firstChange(stack), pass);
    return sequences && { mean: mean(sequences), sequences };
  } finally {
    close();
  }
}
