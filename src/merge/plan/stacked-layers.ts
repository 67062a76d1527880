import { parseModelConfig } from '../../formats/model-config';
import type { Checkpoint } from '../../inputs/checkpoint';
import { nameSome, type Problems } from '../../inputs/problems';
import { configFaults } from '../../models/claim';
import { restack } from '../../models/depth';
import { splitLayer } from '../../models/tensor-role';
import type { TensorPlan } from './plan';
import type { SliceOutline } from './recipe-slices';

/** For every layer of a stack the layer it comes from. */
export function stackedLayers(slices: readonly SliceOutline[]): number[] {
  return slices.flatMap((slice) => {
    const { begin, end } = (slice.base ?? slice.sources[0])!.layers!;
    return Array.from({ length: end - begin }, (_, i) => begin + i);
  });
}

/**
 * The config of stacked layers, with what of it depends on their index; what no config can say becomes a problem: an error
 * where the output would not load, a warning where layers compute otherwise than they did, or nobody knows.
 */
export function restackedText(
  { config, path }: Checkpoint,
  layerOrder: readonly number[],
  problems: Problems,
): string {
  const { text, unsaid, misplaced, changed, known } = restack(config!, layerOrder);
  if (layerOrder.every((layer, i) => layer === i)) return text;
  const type = config!.modelType ?? 'unknown';
  const numbered = (layers: readonly number[]) => nameSome(layers.map((i) => `${i} (from ${layerOrder[i]})`));
  if (unsaid.length > 0 || misplaced.length > 0) {
    problems.error(
      'LayerKindsFixed',
      unsaid.length > 0
        ? `In ${type} models such as ${path} the fields ${unsaid.join(', ')} say what a layer is made of by its index, and no values of these fields describe this stack.`
        : `In ${type} models such as ${path} the index of a layer says what it is made of: these layers of the output hold other tensors than config.json would call for: ${numbered(misplaced)}.`,
      'Cut the slices so that every layer keeps its place in the pattern; the output would not load as it is.',
    );
  } else if (changed.length > 0) {
    problems.warn(
      'LayerKindsByIndex',
      `In ${type} models such as ${path} the kind of a layer follows from its index, and stacking moves layers to other indices. Layers that would be computed differently: ${numbered(changed)}.`,
      'Cut the slices so that every layer keeps its place in the pattern, or add layer_types to the config of the output.',
    );
  } else if (!known) {
    problems.warn(
      'LayerKindsUnknown',
      `It is not known whether layers of ${type} models such as ${path} depend on their index, and stacking moves them to other indices.`,
      'Look for fields of config.json that name layers or say how many are of a kind, and correct them in the output.',
    );
  }
  return text;
}

/**
 * Layers of models of other sizes have no one config: a loader makes all layers as that of the output says.
 * @param text config.json of the output
 * @param from whose config it is made of
 */
export function checkStack(
  text: string,
  tensors: readonly TensorPlan[],
  from: Checkpoint,
  problems: Problems,
): void {
  const restOf = (name: string) => splitLayer(name)?.rest;
  const left = new Set(configFaults(from.config!, from.tensors).unused.map(restOf));
  const planned = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const { missing, misshapen, unused, unsure } = configFaults(parseModelConfig(text, 'config.json'), planned);
  const unfit = [...missing, ...misshapen, ...unused.filter((name) => !left.has(restOf(name)))];
  if (unfit.length === 0) return;
  problems.add({
    severity: unsure ? 'warning' : 'error',
    code: 'StackUnfit',
    message: `The layers of the output do not fit its config.json, which is that of ${from.path}: no loader gives each its own sizes.`,
    remedy: 'Take layers from models of the same sizes and the same parts.',
    tensors: unfit,
  });
}
