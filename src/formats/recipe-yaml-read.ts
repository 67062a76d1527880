/** The recipe schema read from a YAML tree: mergekit's `config.py`, version 0.1.4, and our extensions. */
import { GGUF_TYPES } from './gguf-type';
import type {
  ParameterFilter,
  ParameterSetting,
  Recipe,
  RecipeExtensions,
  RecipeModel,
  RecipeParameters,
  RecipeSlice,
} from './recipe';
import {
  assign,
  complain,
  type Field,
  isList,
  isMapping,
  need,
  type RecipeReader,
  readChoice,
  readFlag,
  readInteger,
  readList,
  readMapping,
  readModelRef,
  readScalar,
  readText,
} from './recipe-yaml-nodes';
import { readTokenizer } from './recipe-yaml-tokenizer';

const ROOT = [
  'name',
  'merge_method',
  'base_model',
  'models',
  'slices',
  'parameters',
  'dtype',
  'out_dtype',
  'tokenizer_source',
  'tokenizer',
  'amalgam',
];
const NOT_YET = new Map([
  [
    'modules',
    'Models of several towers cannot be merged tower by tower; give “models” or “slices” in its place.',
  ],
  ['chat_template', 'Remove it: the chat template comes with the tokenizer files.'],
]);
const DTYPES = ['float32', 'float16', 'bfloat16'] as const;
const EXTENSIONS = [
  'seed',
  'gradient_ends',
  'shard_bytes',
  'non_finite',
  'include',
  'exclude',
  'gguf',
  'gguf_only',
];
const MAX_LAYERS = 100_000;

/**
 * Reads a recipe; what is wrong goes to `reader.problems`, and then the result is not to be used.
 * @throws AmalgamError `LimitExceeded`
 */
export function readRecipe(reader: RecipeReader, root: Field): Recipe | undefined {
  const fields = readMapping(reader, root, ROOT, NOT_YET);
  if (!fields) return undefined;
  const method = need(reader, fields, root, 'merge_method');
  const models = fields.get('models');
  const slices = fields.get('slices');
  if ((models === undefined) === (slices === undefined)) {
    complain(
      reader,
      slices ?? root,
      'The recipe needs either models or slices, one of the two.',
      'List the models to merge under “models:”.',
    );
  }
  const recipe: Recipe = {
    mergeMethod: (method && readText(reader, method)) ?? '',
    parameters: readParameters(reader, fields.get('parameters')),
    amalgam: readExtensions(reader, fields.get('amalgam')),
  };
  const name = fields.get('name');
  assign(recipe, 'name', name && readText(reader, name));
  assign(recipe, 'baseModel', readModelRef(reader, fields.get('base_model')));
  if (models) recipe.models = readEntries(reader, models, readModel);
  if (slices) recipe.slices = readEntries(reader, slices, readSlice);
  const [dtype, outDtype] = ['dtype', 'out_dtype'].map((key) => {
    const field = fields.get(key);
    return field && readChoice(reader, field, DTYPES);
  });
  assign(recipe, 'outDtype', outDtype ?? dtype);
  Object.assign(recipe, readTokenizer(reader, fields.get('tokenizer_source'), fields.get('tokenizer')));
  return recipe;
}

function readModel(reader: RecipeReader, entry: Field): RecipeModel | undefined {
  const fields = readMapping(reader, entry, ['model', 'parameters']);
  const model = fields && readModelRef(reader, need(reader, fields, entry, 'model'));
  if (!fields || model === undefined) return undefined;
  return { model, parameters: readParameters(reader, fields.get('parameters')) };
}

function readSlice(reader: RecipeReader, entry: Field): RecipeSlice | undefined {
  const unsupported = new Map([
    ['residual_weight', 'Remove it: mergekit declares it but does nothing with it.'],
  ]);
  const fields = readMapping(reader, entry, ['sources', 'base_model', 'parameters'], unsupported);
  const sources = fields && need(reader, fields, entry, 'sources');
  if (!fields || !sources) return undefined;
  const slice: RecipeSlice = {
    sources: readEntries(reader, sources, readSource),
    parameters: readParameters(reader, fields.get('parameters')),
  };
  assign(slice, 'baseModel', readModelRef(reader, fields.get('base_model')));
  return slice;
}

function readSource(reader: RecipeReader, entry: Field): RecipeSlice['sources'][number] | undefined {
  const fields = readMapping(reader, entry, ['model', 'layer_range', 'parameters']);
  if (!fields) return undefined;
  const model = readModelRef(reader, need(reader, fields, entry, 'model'));
  const range = need(reader, fields, entry, 'layer_range');
  const ends = range && readList(reader, range)?.map((end) => readInteger(reader, end, 0, MAX_LAYERS));
  if (model === undefined || !range || !ends || ends.includes(undefined)) return undefined;
  const [begin, end] = ends as number[];
  if (ends.length !== 2 || begin! >= end!) {
    return complain(
      reader,
      range,
      `${range.where} is not a range.`,
      'Write [first, end]: the end itself is not included.',
    );
  }
  return { model, layerRange: [begin!, end!], parameters: readParameters(reader, fields.get('parameters')) };
}

/** A list with at least one entry; entries with problems are left out, and the recipe with them. */
function readEntries<T>(
  reader: RecipeReader,
  field: Field,
  read: (reader: RecipeReader, entry: Field) => T | undefined,
): T[] {
  const entries = readList(reader, field);
  if (entries?.length === 0) complain(reader, field, `${field.where} is empty.`, 'List at least one model.');
  return (entries ?? []).map((entry) => read(reader, entry)).filter((entry) => entry !== undefined);
}

/** Parameters by name; a name that is absent has no entry. */
function readParameters(reader: RecipeReader, field: Field | undefined): RecipeParameters {
  const parameters: RecipeParameters = {};
  for (const [name, setting] of (field && readMapping(reader, field, 'any')) ?? []) {
    const value = readSetting(reader, setting);
    if (!/^[a-z]\w*$/i.test(name)) {
      complain(
        reader,
        { ...setting, node: setting.at },
        `${setting.where} is not a parameter’s name.`,
        'Names are words such as weight.',
      );
    } else if (value !== undefined) parameters[name] = value;
  }
  return parameters;
}

function readSetting(reader: RecipeReader, field: Field): ParameterSetting | undefined {
  if (isMapping(reader, field)) {
    return complain(
      reader,
      field,
      `${field.where} is a mapping.`,
      'Filters stand in a list: “- filter: …”, “  value: …”.',
    );
  }
  if (!isList(reader, field)) return readScalar(reader, field);
  const items = readList(reader, field)!;
  if (items.length > 0 && items.every((item) => isMapping(reader, item))) {
    const filters = items.map((item) => readFilter(reader, item));
    return filters.includes(undefined) ? undefined : (filters as ParameterFilter[]);
  }
  return readGradient(reader, field, items);
}

function readGradient(reader: RecipeReader, field: Field, items: Field[]): number[] | undefined {
  const values = items.map((item) =>
    isMapping(reader, item) || isList(reader, item) ? undefined : readScalar(reader, item),
  );
  if (values.length > 0 && values.every((value) => typeof value === 'number')) return values;
  return complain(
    reader,
    field,
    `${field.where} is a list of something other than numbers or filters.`,
    'A gradient is a list of numbers, [0, 0.5, 1]; filters are a list of mappings with value and filter.',
  );
}

function readFilter(reader: RecipeReader, item: Field): ParameterFilter | undefined {
  const fields = readMapping(reader, item, ['filter', 'value']);
  const valueField = fields && need(reader, fields, item, 'value');
  if (!fields || !valueField) return undefined;
  const value = isList(reader, valueField)
    ? readGradient(reader, valueField, readList(reader, valueField)!)
    : readScalar(reader, valueField);
  const filterField = fields.get('filter');
  const filter = filterField && readText(reader, filterField);
  if (value === undefined || (filterField && filter === undefined)) return undefined;
  return filter === undefined ? { value } : { filter, value };
}

function readExtensions(reader: RecipeReader, field: Field | undefined): RecipeExtensions {
  const extensions: RecipeExtensions = {};
  const fields = field && readMapping(reader, field, EXTENSIONS);
  if (!fields) return extensions;
  const read = <T>(name: string, reading: (field: Field) => T): T | undefined => {
    const found = fields.get(name);
    return found && reading(found);
  };
  assign(
    extensions,
    'seed',
    read('seed', (f) => readInteger(reader, f, 0, 2 ** 32 - 1)),
  );
  assign(
    extensions,
    'gradientEnds',
    read('gradient_ends', (f) => readChoice(reader, f, ['mergekit', 'nearest'])),
  );
  assign(
    extensions,
    'shardBytes',
    read('shard_bytes', (f) => readInteger(reader, f, 1, Number.MAX_SAFE_INTEGER)),
  );
  assign(
    extensions,
    'nonFinite',
    read('non_finite', (f) => readChoice(reader, f, ['stop', 'carry'])),
  );
  assign(
    extensions,
    'gguf',
    read('gguf', (f) => readChoice(reader, f, GGUF_TYPES)),
  );
  assign(
    extensions,
    'ggufOnly',
    read('gguf_only', (f) => readFlag(reader, f)),
  );
  for (const key of ['include', 'exclude'] as const) {
    assign(
      extensions,
      key,
      read(key, (f) => readPatterns(reader, f)),
    );
  }
  return extensions;
}

/** Patterns of tensor names: at least one, each a text. */
function readPatterns(reader: RecipeReader, field: Field): string[] | undefined {
  const items = readList(reader, field);
  if (items?.length === 0) {
    return complain(reader, field, `${field.where} is empty.`, 'Name at least one tensor, or remove it.');
  }
  return items?.map((item) => readText(reader, item)).filter((text) => text !== undefined);
}
