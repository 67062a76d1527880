/** From the choices of the Collapse tab to a planner, and what it would do with what was measured. Pure. */
import { layersToRemove, leastInfluential, straightestBlock } from '../../collapse/choose-layers';
import { errorReport } from '../../errors';
import type {
  CollapsePlanner,
  CollapseVariant,
  DepthTarget,
  MeasureDepthReport,
} from '../../reports/collapse';
import type { ModelInfo } from '../../reports/models';
import { checkpointOf, chosenModel } from '../state/model-choices';
import type { StudioState } from '../state/studio-state';
import type { CollapseSlice } from './collapse-state';

/** The model whose layers are looked at. */
export function collapseModel(state: StudioState): string | null {
  return chosenModel(state, state.collapse.model);
}

/** How many layers the model has, or null where its config does not say. */
export function layersOf(models: readonly ModelInfo[], ref: string | null): number | null {
  return ref === null ? null : (checkpointOf(models, ref)?.layers ?? null);
}

/** What becomes of the layers in front: as chosen, else what suits the planner. */
export function variantOf({ variant, planner }: CollapseSlice): CollapseVariant {
  return variant ?? (planner === 'laco' ? 'rdsc' : 'drop');
}

export function plannerOf(slice: CollapseSlice): CollapsePlanner {
  const { planner, laco, tokens, manual } = slice;
  switch (planner) {
    case 'manual':
      return { kind: 'manual', remove: [...manual] };
    case 'influence':
      return { kind: 'influence', target: targetOf(slice, slice.influence) };
    case 'angular':
      return { kind: 'angular', target: targetOf(slice, slice.angle), tokens };
    case 'laco':
      return {
        ...{ kind: 'laco', block: laco.block, interval: laco.interval, threshold: laco.threshold },
        lowest: laco.lowest,
        ...(laco.highest === null ? {} : { highest: laco.highest }),
        ...(laco.stops ? { target: depthTarget(slice) } : {}),
      };
  }
}

function targetOf(slice: CollapseSlice, threshold: number): DepthTarget | { threshold: number } {
  return slice.targetBy === 'threshold' ? { threshold } : depthTarget(slice);
}

/** A number or a share of layers. */
function depthTarget({ targetBy, remove, ratio }: CollapseSlice): DepthTarget {
  return targetBy === 'ratio' ? { ratio } : { remove };
}

/**
 * Why these choices cannot be meant for a model of so many layers, or null.
 * @param layers null where it is not known
 */
export function choicesProblem(slice: CollapseSlice, layers: number | null): string | null {
  const { planner, manual, laco, targetBy } = slice;
  if (layers === null) return null;
  if (layers < 2) return 'The model has a single layer, so there is nothing to do.';
  if (planner === 'manual') {
    if (manual.length === 0) return 'Choose layers on the map first.';
    if (manual.length >= layers) return 'All layers are chosen; leave at least one.';
    if (manual.includes(0) && variantOf(slice) !== 'drop') {
      return 'Layer 0 has no layer before it to be folded into: keep it, or drop layers.';
    }
    return null;
  }
  if (planner === 'laco') {
    const { block, interval, lowest, highest } = laco;
    const top = highest ?? layers - 1;
    if (!Number.isInteger(block) || block < 2 || block > layers) return `A block has 2 to ${layers} layers.`;
    if (!Number.isInteger(interval) || interval < 1) return 'The interval is a whole number from 1.';
    if (lowest < 0 || top >= layers || top - lowest + 1 < block) {
      return `The lowest and the highest layer lie within 0 to ${layers - 1}, with room for a block.`;
    }
    if (!laco.stops) return null;
  } else if (targetBy === 'threshold') {
    const threshold = planner === 'influence' ? slice.influence : slice.angle;
    return threshold > 0 ? null : 'The threshold is above 0.';
  }
  try {
    return layersToRemove(depthTarget(slice), layers) === 0 ? 'That is less than half a layer.' : null;
  } catch (thrown) {
    const { message, hint } = errorReport(thrown);
    return `${message} ${hint}`;
  }
}

/** The layers that would go, as far as that is known without running anything; null where it is not. */
export function goingLayers(
  slice: CollapseSlice,
  survey: MeasureDepthReport | null,
): { layers: number[] } | { why: string } | null {
  const { planner, manual, tokens } = slice;
  if (planner === 'manual') return { layers: [...manual].sort((a, b) => a - b) };
  if (planner === 'laco' || !survey || choicesProblem(slice, survey.layers) !== null) return null;
  try {
    if (planner === 'influence') {
      // what is taken in needs a layer before it
      const first = variantOf(slice) === 'drop' ? 0 : 1;
      return { layers: leastInfluential(survey.influence, targetOf(slice, slice.influence), first) };
    }
    const { distance } = survey;
    const map = tokens === 'all' ? distance.allTokens : distance.lastToken;
    return { layers: straightestBlock(map, targetOf(slice, slice.angle)) };
  } catch (thrown) {
    return { why: errorReport(thrown).message };
  }
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
