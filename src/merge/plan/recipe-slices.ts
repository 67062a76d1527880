/** The two forms of a recipe, `models` and `slices`, brought to one: output slices with their base and contributors. */
import { canonicalRef, type Recipe, type RecipeParameters } from '../../formats/recipe';
import { nameSome, type Problems } from '../../inputs/problems';
import type { MergeMethod } from '../method';

/** One model in a slice, with the layers it gives; without layers all of them. */
export interface SliceSource {
  ref: string;
  layers?: { begin: number; end: number };
  parameters: RecipeParameters;
}

export interface SliceOutline {
  /** The base, where it takes part in the arithmetic of this slice; alone it gives the slice as it is. */
  base?: SliceSource & { listed?: boolean };
  /** Contributors in recipe order, the base not among them. */
  sources: SliceSource[];
  /** Parameters of the slice. */
  parameters: RecipeParameters;
}

/**
 * Most contributors of a tensor: the sign election has a bit of a word for each, and a tile of every contributor is on the
 * device at the same time.
 */
export const MAX_CONTRIBUTORS = 32;

/**
 * Lays the recipe out in slices and checks that each has the models its method needs.
 *
 * A base that is listed among the models of a method that works on differences is not counted as one of them: its
 * difference is zero and mergekit 0.1.4 leaves it out (`generalized_task_arithmetic.py`: get_task_vectors).
 */
export function recipeSlices(recipe: Recipe, method: MergeMethod, problems: Problems): SliceOutline[] {
  const raw = recipe.slices
    ? recipe.slices.map((slice) => ({
        base: slice.baseModel ?? recipe.baseModel,
        sources: slice.sources.map(({ model, layerRange: [begin, end], parameters }) => ({
          ref: canonicalRef(model),
          layers: { begin, end },
          parameters,
        })),
        parameters: slice.parameters,
      }))
    : [
        {
          base: recipe.baseModel,
          sources: (recipe.models ?? []).map(({ model, parameters }) => ({
            ref: canonicalRef(model),
            parameters,
          })),
          parameters: {},
        },
      ];
  return raw.map((listed, index) => {
    const where = recipe.slices ? `Slice ${index + 1}` : 'The recipe';
    const slice = { ...listed, sources: eachOnce(listed.sources, where, problems) };
    if (!recipe.slices) addBase(slice, method, recipe.parameters, problems);
    const outline = outlineSlice(slice, method, where, problems);
    checkCount(outline, method, where, problems);
    return outline;
  });
}

function outlineSlice(
  slice: { base: string | undefined; sources: SliceSource[]; parameters: RecipeParameters },
  method: MergeMethod,
  where: string,
  problems: Problems,
): SliceOutline {
  checkLengths(slice.sources, where, problems);
  const { parameters, sources } = slice;
  if (method.base === 'none' && slice.base !== undefined) warnOfBase(slice.base, sources, method, problems);
  if (method.base === 'none' || slice.base === undefined) {
    if (method.base === 'required') {
      problems.error(
        'BaseMissing',
        `${where} has no base model, and ${method.id} merges differences from a base.`,
        'Choose the model that the others were fine-tuned from as base_model, or another method.',
      );
    }
    return { sources, parameters };
  }
  const ref = canonicalRef(slice.base);
  const listed = sources.find((source) => source.ref === ref);
  // the base of slerp is one end of its arc, not what differences are taken from
  if (listed && sources.length > 1 && method.id !== 'slerp') {
    problems.note(
      'BaseListed',
      `${where} lists the base ${ref} among the models; its difference from itself is zero, and it is left out.`,
      'No action needed. Remove it from the list to make that explicit.',
    );
  }
  return {
    base: listed
      ? { ...listed, listed: true }
      : { ref, ...layersOfBase(sources, where, problems), parameters: {} },
    sources: sources.filter((source) => source !== listed),
    parameters,
  };
}

function warnOfBase(
  base: string,
  sources: readonly SliceSource[],
  method: MergeMethod,
  problems: Problems,
): void {
  if (sources.some(({ ref }) => ref === canonicalRef(base))) return;
  problems.warn(
    'BaseIgnored',
    `${method.id} works without a base: ${base} gives the config and the tokenizer, but none of its weights.`,
    'List it among the models if its weights are to count, or choose another method.',
  );
}

/** A base that a slice does not list gives the layers that all its sources give. */
function layersOfBase(
  sources: readonly SliceSource[],
  where: string,
  problems: Problems,
): Pick<SliceSource, 'layers'> {
  if (new Set(sources.map(({ layers }) => layers?.begin)).size > 1) {
    problems.error(
      'BaseLayersUnclear',
      `${where} takes other layers from one model than from the next, and does not say which ones of the base they differ from.`,
      'List the base among the sources of the slice, with its layer_range.',
    );
  }
  const layers = sources[0]?.layers;
  return layers ? { layers } : {};
}

/** mergekit's tensors and parameters stand under their model (its `plan.py`): the last entry of a model is the one that counts. */
function eachOnce(sources: readonly SliceSource[], where: string, problems: Problems): SliceSource[] {
  const once = new Map<string, SliceSource>();
  const twice = new Set<string>();
  for (const source of sources) {
    const { layers } = once.get(source.ref) ?? source;
    if (layers?.begin !== source.layers?.begin || layers?.end !== source.layers?.end) {
      problems.error(
        'ModelTwice',
        `${where} takes two ranges of layers from ${source.ref}.`,
        'Give each range a slice of its own.',
      );
    } else if (once.has(source.ref)) twice.add(source.ref);
    once.set(source.ref, source);
  }
  if (twice.size > 0) {
    problems.warn(
      'ModelTwice',
      `${where} lists a model more than once: ${nameSome([...twice])}. It counts once, with the parameters given last, as in mergekit.`,
      'Take the other entries out.',
    );
  }
  return [...once.values()];
}

/**
 * mergekit adds a base that is not listed to the models (its `plan.py`: normalize_config), where a method without a base
 * then counts it like any other. It can do so only if the parameters of the whole recipe hold for it.
 */
function addBase(
  slice: { base: string | undefined; sources: SliceSource[] },
  method: MergeMethod,
  parameters: RecipeParameters,
  problems: Problems,
): void {
  if (method.base !== 'none' || slice.base === undefined) return;
  const ref = canonicalRef(slice.base);
  if (slice.sources.some((source) => source.ref === ref) || slice.sources.length >= method.models.max) return;
  const complete = Object.entries(method.modelParameters).every(
    ([name, spec]) => spec.default !== undefined || Object.hasOwn(parameters, name),
  );
  if (!complete) return;
  slice.sources.push({ ref, parameters: {} });
  problems.note(
    'BaseAdded',
    `base_model ${ref} is not among the models: it is added to them, as in mergekit, and counts like any other.`,
    'List it among the models to make that explicit, or take base_model out.',
  );
}

function checkLengths(sources: readonly SliceSource[], where: string, problems: Problems): void {
  const lengths = sources.map(({ layers }) => (layers ? layers.end - layers.begin : 0));
  if (new Set(lengths).size <= 1) return;
  problems.error(
    'LayerRangesDiffer',
    `${where} takes different numbers of layers from its models: ${sources
      .map(({ ref }, i) => `${lengths[i]} from ${ref}`)
      .join(', ')}.`,
    'Give every source of a slice a layer_range of the same length.',
  );
}

function checkCount(slice: SliceOutline, method: MergeMethod, where: string, problems: Problems): void {
  const { min } = method.models;
  const max = Math.min(method.models.max, MAX_CONTRIBUTORS);
  const count = slice.sources.length;
  if (count >= min && count <= max) return;
  if (count === 0 && slice.base?.listed) return;
  const wanted = min === max ? `exactly ${min}` : count < min ? `at least ${min}` : `at most ${max}`;
  problems.error(
    'ModelCount',
    `${where} has ${count} ${count === 1 ? 'model' : 'models'}${slice.base ? ' besides the base' : ''}; ${method.id} takes ${wanted}.`,
    count < min ? 'Add a model.' : 'Take models out, or merge in two steps: first some, then the results.',
  );
}
