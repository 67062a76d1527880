/** The recipe schema read from a YAML tree: mergekit's `config.py`, version 0.1.4, and our extensions. */
import { isMap } from 'yaml';
import { COMBINATIONS } from './adapter-combination';
import { BUILT_IN_TEMPLATES, canBeJinja } from './chat-template';
import { GGUF_TYPES } from './gguf-type';
import { displayName } from './names';
import {
  type IgnoredKeys,
  RECIPE_KEYS,
  type Recipe,
  type RecipeExtensions,
  type RecipeModel,
  type RecipeParameters,
  type RecipeSlice,
  type RecipeSource,
  type RecipeToken,
  type TokenSource,
} from './recipe';
import { readModules } from './recipe-yaml-modules';
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
  readNumber,
  readParameters,
  readText,
} from './recipe-yaml-nodes';
import type { YamlData } from './yaml-text';

/** Parameters without effect where they are: the author meant them elsewhere. */
const MISPLACED = new Map(
  ['t', 'weight', 'density', 'lambda', 'gamma', 'epsilon', 'scale'].map((name) => [
    name,
    `Write it under “parameters:”: “parameters: { ${name}: … }”.`,
  ]),
);
const BESIDE_MODEL = new Map([
  ...MISPLACED,
  ['revision', 'Write the model as path@revision.'],
  ['lora', 'Write the model as path+adapter.'],
]);
/** Files of mergekit's other tools, by a key that only they have. */
const OTHER_TOOLS = new Map([
  ['experts', 'This is a configuration of mergekit-moe, which builds a mixture of experts.'],
  ['gate_mode', 'This is a configuration of mergekit-moe, which builds a mixture of experts.'],
  ['genome', 'This is a configuration of mergekit-evolve, which searches for parameters.'],
]);
/** The same names as in mergekit (its `merge.py`: `_set_chat_template`). */
const CHAT_TEMPLATES = Object.keys(BUILT_IN_TEMPLATES);
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
  'imatrix',
  'parameters',
  'models',
  'output',
  'combination',
  'rank',
];
const MAX_LAYERS = 100_000;

/**
 * Reads a recipe; what is wrong goes to `reader.problems`, and then the result is not to be used.
 * @throws AmalgamError `LimitExceeded`
 */
export function readRecipe(reader: RecipeReader, root: Field): Recipe | undefined {
  const tool = otherTool(root);
  if (tool) return complain(reader, root, tool, 'Amalgam reads recipes of mergekit-yaml and mergekit-multi.');
  const ignored = new Map<string, YamlData>();
  const fields = readMapping(reader, root, RECIPE_KEYS, { refused: MISPLACED, ignored });
  if (!fields) return undefined;
  const method = need(reader, fields, root, 'merge_method');
  const recipe: Recipe = {
    mergeMethod: (method && readText(reader, method)) ?? '',
    parameters: readParameters(reader, fields.get('parameters')),
    amalgam: {},
  };
  const name = fields.get('name');
  assign(recipe, 'name', name && readText(reader, name));
  assign(recipe, 'baseModel', readModelRef(reader, fields.get('base_model')));
  const modules = fields.get('modules');
  if (modules) readModules(reader, modules, fields, recipe, readTree, MISPLACED);
  else readTree(reader, root, fields, recipe);
  const [dtype, outDtype] = ['dtype', 'out_dtype'].map((key) => {
    const field = fields.get(key);
    return field && readDtype(reader, field);
  });
  assign(recipe, 'outDtype', outDtype ?? dtype);
  Object.assign(recipe, readTokenizer(reader, fields.get('tokenizer_source'), fields.get('tokenizer')));
  assign(recipe, 'chatTemplate', readChatTemplate(reader, fields.get('chat_template')));
  readExtensions(reader, fields.get('amalgam'), recipe);
  return Object.assign(recipe, kept(ignored));
}

/** Name of the other mergekit tool that a file is for, or undefined. */
function otherTool({ node }: Field): string | undefined {
  if (!isMap(node) || node.has('merge_method')) return undefined;
  return [...OTHER_TOOLS].find(([key]) => node.has(key))?.[1];
}

/** Reads `models` or `slices`, whichever is there: an empty list is as good as none. */
function readTree(reader: RecipeReader, at: Field, fields: ReadonlyMap<string, Field>, recipe: Recipe): void {
  const [models, slices] = ['models', 'slices'].map((name) => {
    const field = fields.get(name);
    return field && isList(reader, field) && readList(reader, field)!.length === 0 ? undefined : field;
  });
  if ((models === undefined) === (slices === undefined)) {
    complain(
      reader,
      slices ?? at,
      'The recipe needs either models or slices, one of the two.',
      'List the models to merge under “models:”.',
    );
  }
  if (models) recipe.models = readEntries(reader, models, readModel);
  if (slices) recipe.slices = readEntries(reader, slices, readSlice);
}

/** A dtype, with or without `torch.` in front. */
function readDtype(reader: RecipeReader, field: Field): Recipe['outDtype'] {
  const text = readText(reader, field);
  const found = DTYPES.find((dtype) => dtype === text?.replace(/^torch\./, ''));
  if (text === undefined || found) return found;
  return readChoice(reader, field, DTYPES);
}

function readChatTemplate(reader: RecipeReader, field: Field | undefined): string | undefined {
  const text = field && readText(reader, field);
  if (!field || text === undefined) return undefined;
  if (text === 'auto' || CHAT_TEMPLATES.includes(text) || canBeJinja(text)) return text;
  return complain(
    reader,
    field,
    `chat_template cannot be “${displayName(text, 80)}”.`,
    `Write auto, ${CHAT_TEMPLATES.join(', ')}, or a template in Jinja.`,
  );
}

function readModel(reader: RecipeReader, entry: Field): RecipeModel | undefined {
  const ignored = new Map<string, YamlData>();
  const fields = readMapping(reader, entry, ['model', 'parameters'], { refused: BESIDE_MODEL, ignored });
  const model = fields && readModelRef(reader, need(reader, fields, entry, 'model'));
  if (!fields || model === undefined) return undefined;
  return { model, parameters: readParameters(reader, fields.get('parameters')), ...kept(ignored) };
}

function kept(ignored: ReadonlyMap<string, YamlData>): { ignored?: IgnoredKeys } {
  return ignored.size > 0 ? { ignored: Object.fromEntries(ignored) } : {};
}

function readSlice(reader: RecipeReader, entry: Field): RecipeSlice | undefined {
  const ignored = new Map<string, YamlData>();
  const fields = readMapping(reader, entry, ['sources', 'base_model', 'parameters'], {
    refused: MISPLACED,
    ignored,
  });
  const sources = fields && need(reader, fields, entry, 'sources');
  if (!fields || !sources) return undefined;
  const slice: RecipeSlice = {
    sources: readEntries(reader, sources, readSource),
    parameters: readParameters(reader, fields.get('parameters')),
    ...kept(ignored),
  };
  assign(slice, 'baseModel', readModelRef(reader, fields.get('base_model')));
  return slice;
}

function readSource(reader: RecipeReader, entry: Field): RecipeSource | undefined {
  const ignored = new Map<string, YamlData>();
  const fields = readMapping(reader, entry, ['model', 'layer_range', 'parameters'], {
    refused: BESIDE_MODEL,
    ignored,
  });
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
  return {
    model,
    layerRange: [begin!, end!],
    parameters: readParameters(reader, fields.get('parameters')),
    ...kept(ignored),
  };
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

/** Reads the keys under `amalgam` into the recipe, parameters among it that mergekit could not read elsewhere. */
function readExtensions(reader: RecipeReader, field: Field | undefined, recipe: Recipe): void {
  const extensions: RecipeExtensions = recipe.amalgam;
  const fields = field && readMapping(reader, field, EXTENSIONS);
  if (!fields) return;
  const add = (to: RecipeParameters, from: Field | undefined) => {
    for (const [name, setting] of Object.entries(readParameters(reader, from))) {
      if (!Object.hasOwn(to, name)) to[name] = setting;
      else
        complain(
          reader,
          from!,
          `${name} is given twice, here and outside of amalgam.`,
          'Remove one of the two.',
        );
    }
  };
  add(recipe.parameters, fields.get('parameters'));
  const models = fields.get('models');
  for (const [ref, setting] of (models && readMapping(reader, models, 'any')) ?? []) {
    const model = recipe.models?.find((entry) => entry.model === ref);
    if (model) add(model.parameters, setting);
    else
      complain(reader, setting, `${setting.where} is not one of the recipe’s models.`, 'Correct the name.');
  }
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
  assign(
    extensions,
    'imatrix',
    read('imatrix', (f) => readText(reader, f)),
  );
  assign(
    extensions,
    'output',
    read('output', (f) => readChoice(reader, f, ['model', 'adapter'])),
  );
  assign(
    extensions,
    'combination',
    read('combination', (f) => readChoice(reader, f, COMBINATIONS)),
  );
  assign(
    extensions,
    'rank',
    read('rank', (f) => readInteger(reader, f, 1, 2 ** 16)),
  );
  for (const key of ['include', 'exclude'] as const) {
    assign(
      extensions,
      key,
      read(key, (f) => readPatterns(reader, f)),
    );
  }
}

/** Patterns of tensor names: at least one, each a text. */
function readPatterns(reader: RecipeReader, field: Field): string[] | undefined {
  const items = readList(reader, field);
  if (items?.length === 0) {
    return complain(reader, field, `${field.where} is empty.`, 'Name at least one tensor, or remove it.');
  }
  return items?.map((item) => readText(reader, item)).filter((text) => text !== undefined);
}

// `tokenizer_source` and `tokenizer` of mergekit's schema (its `tokenizer/config.py`, version 0.1.4).

type Tokenizer = Pick<Recipe, 'tokenizerSource' | 'tokenizer'>;

const MAX_MULTIPLE = 65_536;
const MAX_TOKEN_ID = 2 ** 31 - 1;

/** Reads either of the two keys, which mean the same: one of them at most. */
function readTokenizer(reader: RecipeReader, legacy: Field | undefined, field: Field | undefined): Tokenizer {
  if (legacy && field) {
    complain(
      reader,
      field,
      'The recipe has both tokenizer_source and tokenizer.',
      'Keep one: tokenizer: {source: …} says what tokenizer_source does, and more.',
    );
    return {};
  }
  if (legacy) return sourceOf(readModelRef(reader, legacy));
  const fields = field && readMapping(reader, field, ['source', 'tokens', 'pad_to_multiple_of']);
  if (!fields) return {};
  const source = fields.get('source');
  const tokenizer: NonNullable<Recipe['tokenizer']> = {};
  const tokens = fields.get('tokens');
  if (tokens) {
    const read = [...(readMapping(reader, tokens, 'any') ?? [])].map(([token, entry]) =>
      readToken(reader, token, entry),
    );
    tokenizer.tokens = read.filter((entry) => entry !== undefined);
  }
  const multiple = fields.get('pad_to_multiple_of');
  assign(tokenizer, 'padToMultipleOf', multiple && readInteger(reader, multiple, 1, MAX_MULTIPLE));
  return {
    // mergekit's default
    ...sourceOf(source ? readModelRef(reader, source) : 'union'),
    ...(Object.keys(tokenizer).length > 0 ? { tokenizer } : {}),
  };
}

function sourceOf(source: string | undefined): Tokenizer {
  return source === undefined ? {} : { tokenizerSource: source };
}

function readToken(reader: RecipeReader, token: string, entry: Field): RecipeToken | undefined {
  if (token === '') {
    return complain(reader, entry, `${entry.where} names an empty token.`, 'Write the token as a string.');
  }
  const fields = readMapping(reader, entry, ['source', 'force']);
  const field = fields && need(reader, fields, entry, 'source');
  const source = field && readTokenSource(reader, field);
  const forceField = fields?.get('force');
  const force = forceField && readNumber(reader, forceField);
  if (forceField && typeof force !== 'boolean') {
    return complain(reader, forceField, `${forceField.where} is not true or false.`, 'Write true or false.');
  }
  if (!source) return undefined;
  return force === true ? { token, source, force } : { token, source };
}

function readTokenSource(reader: RecipeReader, field: Field): TokenSource | undefined {
  if (!isMapping(reader, field)) {
    const model = readModelRef(reader, field);
    return model === undefined ? undefined : { kind: 'model', model };
  }
  const fields = readMapping(reader, field, ['kind', 'model', 'token', 'token_id']);
  const kindField = fields && need(reader, fields, field, 'kind');
  const kind = kindField && readChoice(reader, kindField, ['zero', 'model_token']);
  if (!fields || !kind) return undefined;
  const [model, token, tokenId] = ['model', 'token', 'token_id'].map((name) => fields.get(name));
  if (kind === 'zero') {
    const extra = model ?? token ?? tokenId;
    if (!extra) return { kind };
    return complain(reader, extra, `${extra.where} has no effect with kind: zero.`, 'Remove it.');
  }
  const ref = readModelRef(reader, need(reader, fields, field, 'model'));
  if ((token === undefined) === (tokenId === undefined)) {
    return complain(
      reader,
      field,
      `${field.where} needs either token or token_id, one of the two.`,
      'Name the token of the model whose embedding is taken.',
    );
  }
  if (ref === undefined) return undefined;
  if (token) {
    const text = readText(reader, token);
    return text === undefined ? undefined : { kind, model: ref, token: text };
  }
  const id = readInteger(reader, tokenId!, 0, MAX_TOKEN_ID);
  return id === undefined ? undefined : { kind, model: ref, tokenId: id };
}
