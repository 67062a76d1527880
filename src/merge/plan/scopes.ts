/**
 * The output, scope by scope: what comes ahead of the blocks, every block, and what comes behind them. A scope pairs
 * the tensors of its models by their name inside the scope, so that block 3 of one model can stand beside block 5 of
 * another.
 */
import { counted } from '../../formats/quantity';
import type { Recipe, RecipeParameters } from '../../formats/recipe';
import type { Model, ModelTensor } from '../../inputs/model';
import type { Problems } from '../../inputs/problems';
import { tensorKey } from '../../models/families';
import { splitLayer, tensorPlace } from '../../models/tensor-role';
import { layerPosition, outsidePosition } from './parameters';
import type { SliceOutline, SliceSource } from './recipe-slices';

/** A model in a scope. */
export interface Participant {
  model: Model;
  /** Its tensors by their name inside the scope. */
  tensors: ReadonlyMap<string, ModelTensor>;
  /** What the recipe says about it at this place. */
  parameters: RecipeParameters;
}

export interface Scope {
  base?: Participant;
  sources: Participant[];
  /** Position on gradients, in [0, 1]. */
  position: number;
  /** Parameters of the slice. */
  parameters: RecipeParameters;
  /** Name in the output of the tensor that the reference (base, else first source) stores under `stored`. */
  outputName(stored: string): string;
}

type Group = Map<string, ModelTensor>;
const EMPTY: Group = new Map();

/** The tensors of a model by scope: `before`, `after`, or stack and index of a block. */
function groupTensors(model: Model): Map<string, Group> {
  const groups = new Map<string, Group>();
  for (const [name, tensor] of model.tensors) {
    const layer = splitLayer(name);
    const key = layer ? blockKey(layer.stack, layer.index) : tensorPlace(name);
    const group = groups.get(key) ?? new Map<string, ModelTensor>();
    group.set(layer ? layer.rest : name, tensor);
    groups.set(key, group);
  }
  return groups;
}

function blockKey(stack: string, index: number): string {
  return `${index}#${stack}`;
}

/** Number of blocks of every stack of a model. */
function stackDepths(model: Model): Map<string, number> {
  const depths = new Map<string, number>();
  for (const name of model.tensors.keys()) {
    const layer = splitLayer(name);
    if (layer) depths.set(layer.stack, Math.max(depths.get(layer.stack) ?? 0, layer.index + 1));
  }
  return depths;
}

/**
 * Every scope of the output of a recipe.
 *
 * @param models by reference
 */
export function recipeScopes(
  recipe: Recipe,
  slices: readonly SliceOutline[],
  models: ReadonlyMap<string, Model>,
  problems: Problems,
): Scope[] {
  const groups = new Map([...models.values()].map((model) => [model, groupTensors(model)]));
  const participant = (source: SliceSource, key: string): Participant => {
    const model = models.get(source.ref)!;
    return { model, tensors: groups.get(model)!.get(key) ?? EMPTY, parameters: source.parameters };
  };
  const scope = (
    slice: SliceOutline,
    keyOf: (source: SliceSource) => string,
    position: number,
    outputName: Scope['outputName'],
  ): Scope => ({
    ...(slice.base ? { base: participant(slice.base, keyOf(slice.base)) } : {}),
    sources: slice.sources.map((source) => participant(source, keyOf(source))),
    position,
    parameters: slice.parameters,
    outputName,
  });

  const first = slices[0]!;
  const last = slices.at(-1)!;
  const ends = recipe.amalgam.gradientEnds ?? 'mergekit';
  const same = (stored: string) => stored;
  const stacked = recipe.slices ? mainStack(referenceOf(first, models), problems) : undefined;
  const scopes = [scope(first, () => 'before', outsidePosition('before', ends), same)];

  // Blocks that are not stacked anew: all of them in a recipe of models, the other towers in one of slices.
  const involved = [first.base, ...first.sources].flatMap((s) => (s ? [models.get(s.ref)!] : []));
  const depths = stackDepths(involved[0]!);
  for (const key of new Set(involved.flatMap((model) => [...groups.get(model)!.keys()]))) {
    const [index, stack] = splitKey(key);
    if (index === undefined || stack === stacked) continue;
    scopes.push(scope(first, () => key, layerPosition(index, depths.get(stack) ?? index + 1), same));
  }
  if (stacked !== undefined) scopes.push(...stackedScopes(slices, models, stacked, scope, problems));
  scopes.push(scope(last, () => 'after', outsidePosition('after', ends), same));
  return scopes;
}

function splitKey(key: string): [index: number | undefined, stack: string] {
  const at = key.indexOf('#');
  return at < 0 ? [undefined, ''] : [Number(key.slice(0, at)), key.slice(at + 1)];
}

/** The blocks of all slices one on top of the other, numbered anew. */
function stackedScopes(
  slices: readonly SliceOutline[],
  models: ReadonlyMap<string, Model>,
  stack: string,
  scope: (
    slice: SliceOutline,
    keyOf: (source: SliceSource) => string,
    position: number,
    outputName: Scope['outputName'],
  ) => Scope,
  problems: Problems,
): Scope[] {
  const prefix = storedStack(referenceOf(slices[0]!, models), stack);
  const scopes: Scope[] = [];
  for (const [number, slice] of slices.entries()) {
    const sources = [...(slice.base ? [slice.base] : []), ...slice.sources];
    if (!checkRanges(number, sources, models, stack, problems)) continue;
    const { begin = 0, end = 0 } = sources[0]?.layers ?? {};
    for (let offset = 0; offset < end - begin; offset++) {
      const outputLayer = scopes.length;
      scopes.push(
        scope(
          slice,
          (source) => blockKey(stack, source.layers!.begin + offset),
          layerPosition(offset, end - begin),
          (stored) => `${prefix}${outputLayer}.${splitLayer(stored)!.rest}`,
        ),
      );
    }
  }
  return scopes;
}

/** The layers asked for must be there. */
function checkRanges(
  slice: number,
  sources: readonly SliceSource[],
  models: ReadonlyMap<string, Model>,
  stack: string,
  problems: Problems,
): boolean {
  let fits = true;
  for (const { ref, layers } of sources) {
    const depth = stackDepths(models.get(ref)!).get(stack) ?? 0;
    if (!layers || layers.end <= depth) continue;
    fits = false;
    problems.error(
      'LayerRangeOutside',
      `Slice ${slice + 1} takes layers ${layers.begin} to ${layers.end - 1} of ${ref}, which has ${counted(depth, 'layer')}.`,
      `Give a layer_range within [0, ${depth}].`,
    );
  }
  return fits;
}

/** The model whose names the output of a slice takes over: its base, else its first source. */
export function referenceOf(slice: SliceOutline, models: ReadonlyMap<string, Model>): Model {
  return models.get((slice.base ?? slice.sources[0])!.ref)!;
}

/** Stacks that are no language model's. */
const OTHER_TOWER =
  /vision|visual|image|audio|speech|encoder|connector|projector|resampler|qformer|abstractor/;

/** The stack that slices cut: the family's, the only one there is, or of several towers the language model's. */
function mainStack(model: Model, problems: Problems): string | undefined {
  const { family } = model.checkpoint;
  if (family) return tensorKey(family.stack, family);
  const stacks = [...stackDepths(model).keys()];
  if (stacks.length === 1) return stacks[0]!;
  const { config } = model.checkpoint;
  if (config?.raw.has('text_config')) {
    const depths = stackDepths(model);
    const texts = stacks.filter((stack) => depths.get(stack) === config.layers && !OTHER_TOWER.test(stack));
    if (texts.length === 1) return texts[0]!;
  }
  problems.error(
    'StackUnclear',
    `${model.ref} has ${stacks.length === 0 ? 'no layers' : `several stacks of layers (${stacks.join(', ')})`}, so slices have no clear meaning.`,
    'Merge it whole, with “models” in place of “slices”.',
  );
  return undefined;
}

/** The stack as the model stores it, with or without the family's prefix. */
function storedStack(model: Model, stack: string): string {
  for (const { name } of model.tensors.values()) {
    const layer = splitLayer(name);
    if (layer && tensorKey(layer.stack, model.checkpoint.family) === stack) return layer.stack;
  }
  return stack;
}
