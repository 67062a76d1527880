/** From a planner to a stack, with what was measured on the way. */

import { AmalgamError } from '../errors';
import type { Sequence } from '../forward/chunk';
import type { Runner } from '../forward/runner';
import { mean } from '../linalg/numbers';
import type {
  CollapsePlanner,
  CollapseReport,
  CollapseStep,
  DepthMeasure,
  MeasureDepthRequest,
} from '../reports/collapse';
import { defaultsOf } from '../reports/option';
import { layersToRemove, leastInfluential, straightestBlock } from './choose-layers';
import { measureDepth, measureSteps } from './depth-measures';
import { checkLaco, collapseGreedily, type LacoSettings } from './laco';
import { LACO_THRESHOLD, lacoOptions } from './options';
import { type Reference, runReference, similarityTo } from './similarity';
import { type CollapseKind, collapseAt, firstChange, removeLayers, type Stack, wholeStack } from './stack';

export interface OpenedStack {
  runner: Runner;
  close(): void;
}

export interface SearchOptions {
  layers: number;
  /** Opens the model of a stack, weights computed as they are read. */
  open(stack: Stack): Promise<OpenedStack>;
  /** Empty for a manual choice that is not measured. */
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
  measure: DepthMeasure | null;
  similarity: CollapseReport['similarity'];
}

const LACO_DEFAULTS = { ...defaultsOf(lacoOptions), threshold: LACO_THRESHOLD };

function lacoSettings(planner: CollapsePlanner & { kind: 'laco' }, layers: number): LacoSettings {
  const { kind: _, target: __, ...given } = planner;
  return { highest: layers - 1, ...LACO_DEFAULTS, ...given, least: leastLayers(planner, layers) };
}

/** The planner with what it leaves to defaults. */
export function resolvedPlanner(planner: CollapsePlanner, layers: number): CollapsePlanner {
  return planner.kind === 'laco' ? { highest: layers - 1, ...LACO_DEFAULTS, ...planner } : planner;
}

/** Layers that the greedy loop leaves in any case. @throws AmalgamError `Usage` for a target that cannot be meant */
export function leastLayers(planner: CollapsePlanner, layers: number): number {
  return planner.kind === 'laco' && planner.target ? layers - layersToRemove(planner.target, layers) : 1;
}

/**
 * Refuses what cannot be meant before anything is downloaded.
 * @throws AmalgamError `Usage`, `NothingToCollapse`, `TextEmpty`
 */
export function checkPlanner(
  planner: CollapsePlanner,
  kind: CollapseKind,
  layers: number,
  isMeasured: boolean,
): void {
  if (!isMeasured && planner.kind !== 'manual') {
    throw new AmalgamError(
      'TextEmpty',
      'Which layers can go is measured by running the model, and there is no calibration text.',
      'Give a text of the kind the model is for, or name the layers yourself.',
    );
  }
  if (layers < 2) {
    throw new AmalgamError(
      'NothingToCollapse',
      'The model has a single layer, so there is nothing to do.',
      'Choose a deeper model.',
    );
  }
  switch (planner.kind) {
    case 'manual':
      removeLayers(layers, planner.remove, kind);
      break;
    case 'laco': {
      const settings = lacoSettings(planner, layers);
      checkLaco(settings, layers);
      if (settings.least === layers) throw nothing('The target removes less than half a layer');
      break;
    }
    default: {
      const { target } = planner;
      if ('threshold' in target) {
        if (target.threshold > 0) return;
        throw new AmalgamError(
          'Usage',
          `A threshold of ${target.threshold} is not valid.`,
          'Give one above 0.',
        );
      }
      const count = layersToRemove(target, layers);
      if (count === 0) throw nothing('The target removes less than half a layer');
    }
  }
}

/**
 * Finds the layers to collapse.
 * @throws AmalgamError what {@link checkPlanner} throws; `NothingToCollapse` when no layer meets the threshold; what
 *   opening and running throw
 */
export async function findStack(
  planner: CollapsePlanner,
  kind: CollapseKind,
  options: SearchOptions,
): Promise<FoundStack> {
  const { layers, sequences } = options;
  checkPlanner(planner, kind, layers, sequences.length > 0);
  if (planner.kind === 'laco') return searchGreedily(lacoSettings(planner, layers), kind, options);
  if (sequences.length === 0 && planner.kind === 'manual') {
    return { stack: removeLayers(layers, planner.remove, kind), steps: [], measure: null, similarity: null };
  }
  const original = await options.open(wholeStack(layers));
  let stack: Stack;
  let measure: DepthMeasure | null = null;
  let reference: Reference;
  try {
    if (planner.kind === 'manual') stack = removeLayers(layers, planner.remove, kind);
    else {
      measure = await measured(original.runner, options);
      stack = removeLayers(layers, chooseLayers(planner, kind, measure), kind);
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
  return { stack, steps: [], measure, similarity };
}

/** What the original looks like, and the similarity curve where one was asked for. */
export async function surveyDepth(
  curve: MeasureDepthRequest['curve'],
  options: SearchOptions,
): Promise<{ measure: DepthMeasure; curve?: { layer: number; similarity: number | null }[] }> {
  const { layers } = options;
  if (curve && !(Number.isSafeInteger(curve.block) && curve.block >= 2 && curve.block <= layers)) {
    throw new AmalgamError(
      'Usage',
      `Blocks of ${curve.block} of ${layers} layers are not valid.`,
      `Give a number from 2 to ${layers}.`,
    );
  }
  const places = curve ? layers - curve.block + 1 : 0;
  const original = await options.open(wholeStack(layers));
  let measure: DepthMeasure;
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
    const stack = collapseAt(wholeStack(layers), layer, curve.block - 1, curve);
    const found = await candidateSimilarity(reference, stack, options);
    points.push({ layer, similarity: found?.mean ?? null });
  }
  return { measure, curve: points };
}

async function searchGreedily(
  settings: LacoSettings,
  kind: CollapseKind,
  options: SearchOptions,
): Promise<FoundStack> {
  const { layers } = options;
  const range = { lowest: settings.lowest, highest: settings.highest - settings.block };
  const original = await options.open(wholeStack(layers));
  const reference = await referenceOf(
    original.runner,
    range,
    range.highest - range.lowest + 1,
    options,
  ).finally(() => original.close());
  const found = new Map<Stack, CollapseReport['similarity']>();
  const { stack, steps } = await collapseGreedily(
    layers,
    settings,
    kind,
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
    throw nothing(`No block stays above the similarity ${settings.threshold}: ${said}`);
  }
  return { stack, steps, measure: null, similarity: found.get(stack)! };
}

function chooseLayers(
  planner: CollapsePlanner & { kind: 'influence' | 'angular' },
  { variant }: CollapseKind,
  { influence, distance }: DepthMeasure,
): number[] {
  // a layer that is merged needs one before it
  const first = variant === 'drop' ? 0 : 1;
  const chosen =
    planner.kind === 'influence'
      ? leastInfluential(influence, planner.target, first)
      : straightestBlock(planner.tokens === 'all' ? distance.allTokens : distance.lastToken, planner.target);
  if (chosen.length > 0) return chosen;
  const what =
    planner.kind === 'influence' ? 'No layer’s block influence is' : 'No block’s angular distance is';
  throw nothing(`${what} within the threshold`);
}

async function measured(runner: Runner, options: SearchOptions): Promise<DepthMeasure> {
  const { sequences, window, signal, onPass } = options;
  options.onPhase?.('measuring', measureSteps(runner, sequences));
  return measureDepth(runner, sequences, window, {
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
): Promise<CollapseReport['similarity']> {
  const { runner, close } = await open(stack);
  try {
    const pass = { ...(signal && { signal }), ...(onPass && { onStep: onPass }) };
    const sequences = await similarityTo(reference, runner, firstChange(stack), pass);
    return sequences && { mean: mean(sequences), sequences };
  } finally {
    close();
  }
}

function nothing(why: string): AmalgamError {
  return new AmalgamError(
    'NothingToCollapse',
    `${why}, so there is nothing to do.`,
    'Choose a lower similarity, a larger target, or another variant.',
  );
}
