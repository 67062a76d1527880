import type { Checkpoint } from '../../inputs/checkpoint';
import type { Problems } from '../../inputs/problems';
import type { SliceOutline } from './recipe-slices';

/** For every layer of a stack the layer it comes from. */
export function stackedLayers(slices: readonly SliceOutline[]): number[] {
  return slices.flatMap((slice) => {
    const { begin, end } = (slice.base ?? slice.sources[0])!.layers!;
    return Array.from({ length: end - begin }, (_, i) => begin + i);
  });
}

/** Families whose layers differ by their index, and whose config does not list the kinds. */
export function warnOfLayerKinds(
  { config, family, path }: Checkpoint,
  layerOrder: readonly number[] | undefined,
  problems: Problems,
): void {
  const type = config?.modelType;
  if (!layerOrder || !family || type === undefined || !family.variesByIndex.includes(type)) return;
  if (layerOrder.every((layer, i) => layer === i)) return;
  if (config!.raw.has('layer_types') || config!.raw.has('no_rope_layers')) return;
  problems.add({
    severity: 'warning',
    code: 'LayerKindsByIndex',
    message: `In ${type} models such as ${path} the kind of a layer follows from its index, and stacking moves layers to other indices.`,
    remedy:
      'Cut the slices so that every layer keeps its place in the pattern, or add layer_types to the config of the output.',
  });
}
