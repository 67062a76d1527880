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
  yamlKey,
} from './recipe';
import { readModules } from './recipe-yaml-modules';
import {
  assign,
  complain,
  type Field,
  isList,
  isMapping,
  need,
  readChoice,
  readFlag,
  readInteger,
  readList,
  readMapping,
  readModelRef,
  readNumber,
  readParameters,
  readShare,
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
const OF_EXPERTS = [
  'This recipe is one of mergekit-moe, for a mixture of experts.',
  'Open it under Experts, or take it to amalgam moe.',
] as const;
const OTHER_TOOLS = new Map<string, readonly [message: string, hint: string]>([
  ['experts', OF_EXPERTS],
  ['gate_mode', OF_EXPERTS],
  [
    'genome',
    [
      'This is a configuration of mergekit-evolve, which searches for parameters.',
      'Amalgam reads recipes of mergekit-yaml, mergekit-multi and mergekit-moe.',
    ],
  ],
]);
/** The same names as in mergekit (its `merge.py`: `_set_chat_template`). */
const CHAT_TEMPLATES = Object.keys(BUILT_IN_TEMPLATES);
const DTYPES = ['float32', 'float16', 'bfloat16'] as const;
/** What the keys under `amalgam` hold, by their names in the recipe. */
const EXTENSIONS: {
  readonly [K in keyof RecipeExtensions]-?: (field: Field) => RecipeExtensions[K] | undefined;
} = {
  seed: (field) => readInteger(field, 0, 2 ** 32 - 1),
  gradientEnds: (field) => readChoice(field, ['mergekit', 'nearest']),
  shardBytes: (field) => readInteger(field, 1, Number.MAX_SAFE_INTEGER),
  nonFinite: (field) => readChoice(field, ['stop', 'carry']),
  include: readPatterns,
  exclude: readPatterns,
  gguf: (field) => readChoice(field, GGUF_TYPES),
  ggufOnly: readFlag,
  imatrix: readText,
  output: (field) => readChoice(field, ['model', 'adapter']),
  combination: (field) => readChoice(field, COMBINATIONS),
  rank: (field) => readInteger(field, 1, 2 ** 16),
  energy: readShare,
};
const EXTENSION_KEYS = [...Object.keys(EXTENSIONS).map(yamlKey), 'parameters', 'models'];
const MAX_LAYERS = 100_000;

/**
 * Reads a recipe; what is wrong goes to `reader.problems`, and then the result is not to be used.
 * @throws AmalgamError `LimitExceeded`
 */
export function readRecipe(root: Field): Recipe | undefined {
  const tool = otherTool(root);
  if (tool) return complain(root, ...tool);
  const ignored = new Map<string, YamlData>();
  const fields = readMapping(root, RECIPE_KEYS, { refused: MISPLACED, ignored });
  if (!fields) return undefined;
  const recipe: Recipe = {
    mergeMethod: readText(need(fields, root, 'merge_method', ignored.keys())) ?? '',
    parameters: readParameters(fields.get('parameters')),
    amalgam: {},
  };
  assign(recipe, 'name', readText(fields.get('name')));
  assign(recipe, 'baseModel', readModelRef(fields.get('base_model')));
  const modules = fields.get('modules');
  if (modules) readModules(modules, fields, recipe, readTree, MISPLACED);
  else readTree(root, fields, recipe);
  const [dtype, outDtype] = ['dtype', 'out_dtype'].map((key) => readDtype(fields.get(key)));
  assign(recipe, 'outDtype', outDtype ?? dtype);
  Object.assign(recipe, readTokenizer(fields.get('tokenizer_source'), fields.get('tokenizer')));
  assign(recipe, 'chatTemplate', readChatTemplate(fields.get('chat_template')));
  readExtensions(fields.get('amalgam'), recipe);
  return Object.assign(recipe, kept(ignored));
}

/** What to say of a file for another mergekit tool, or undefined. */
function otherTool({ node }: Field): readonly [message: string, hint: string] | undefined {
  if (!isMap(node) || node.has('merge_method')) return undefined;
  return [...OTHER_TOOLS].find(([key]) => node.has(key))?.[1];
}

/** Reads `models` or `slices`, whichever is there: an empty list is as good as none. */
function readTree(at: Field, fields: ReadonlyMap<string, Field>, recipe: Recipe): void {
  const [models, slices] = ['models', 'slices'].map((name) => {
    const field = fields.get(name);
    return field && isList(field) && readList(field)!.length === 0 ? undefined : field;
  });
  if ((models === undefined) === (slices === undefined)) {
    complain(
      slices ?? at,
      'The recipe needs either models or slices, one of the two.',
      'List the models to merge under “models:”.',
    );
  }
  if (models) recipe.models = readEntries(models, readModel);
  if (slices) recipe.slices = readEntries(slices, readSlice);
}

/** A dtype, with or without `torch.` in front. */
export function readDtype(field: Field | undefined): Recipe['outDtype'] {
  const text = readText(field);
  const found = DTYPES.find((dtype) => dtype === text?.replace(/^torch\./, ''));
  if (text === undefined || found) return found;
  return readChoice(field, DTYPES);
}

function readChatTemplate(field: Field | undefined): string | undefined {
  const text = readText(field);
  if (text === undefined) return undefined;
  if (text === 'auto' || CHAT_TEMPLATES.includes(text) || canBeJinja(text)) return text;
  return complain(
    field!,
    `chat_template cannot be “${displayName(text, 80)}”.`,
    `Write auto, ${CHAT_TEMPLATES.join(', ')}, or a template in Jinja.`,
  );
}

function readModel(entry: Field): RecipeModel | undefined {
  const read = readEntry(entry, ['model'], BESIDE_MODEL);
  const model = read && readModelRef(need(read.fields, entry, 'model'));
  return model === undefined ? undefined : { model, ...read!.common };
}

/** The fields of a mapping in a list, and what all of them may have: parameters, and keys without effect. */
function readEntry(entry: Field, known: readonly string[], refused: ReadonlyMap<string, string>) {
  const ignored = new Map<string, YamlData>();
  const fields = readMapping(entry, [...known, 'parameters'], { refused, ignored });
  if (!fields) return undefined;
  return { fields, common: { parameters: readParameters(fields.get('parameters')), ...kept(ignored) } };
}

function kept(ignored: ReadonlyMap<string, YamlData>): { ignored?: IgnoredKeys } {
  return ignored.size > 0 ? { ignored: Object.fromEntries(ignored) } : {};
}

function readSlice(entry: Field): RecipeSlice | undefined {
  const read = readEntry(entry, ['sources', 'base_model'], MISPLACED);
  const sources = read && need(read.fields, entry, 'sources');
  if (!sources) return undefined;
  const slice: RecipeSlice = { sources: readEntries(sources, readSource), ...read.common };
  assign(slice, 'baseModel', readModelRef(read.fields.get('base_model')));
  return slice;
}

function readSource(entry: Field): RecipeSource | undefined {
  const read = readEntry(entry, ['model', 'layer_range'], BESIDE_MODEL);
  if (!read) return undefined;
  const model = readModelRef(need(read.fields, entry, 'model'));
  const range = need(read.fields, entry, 'layer_range');
  const ends = readList(range)?.map((end) => readInteger(end, 0, MAX_LAYERS));
  if (model === undefined || !range || !ends || ends.includes(undefined)) return undefined;
  const [begin, end] = ends as [number, number];
  if (ends.length === 2 && begin < end) return { model, layerRange: [begin, end], ...read.common };
  const hint = 'Write [first, end]: the end itself is not included.';
  return complain(range, `${range.where} is not a range.`, hint);
}

/** A list with at least one entry; entries with problems are left out, and the recipe with them. */
function readEntries<T>(field: Field, read: (entry: Field) => T | undefined): T[] {
  const entries = readList(field);
  if (entries?.length === 0) complain(field, `${field.where} is empty.`, 'List at least one model.');
  return (entries ?? []).map(read).filter((entry) => entry !== undefined);
}

/** Reads the keys under `amalgam` into the recipe, parameters among it that mergekit could not read elsewhere. */
function readExtensions(field: Field | undefined, recipe: Recipe): void {
  const fields = readMapping(field, EXTENSION_KEYS);
  if (!fields) return;
  const add = (to: RecipeParameters, from: Field | undefined) => {
    for (const [name, setting] of Object.entries(readParameters(from))) {
      const twice = `${name} is given twice, here and outside of amalgam.`;
      if (Object.hasOwn(to, name)) complain(from!, twice, 'Remove one of the two.');
      else to[name] = setting;
    }
  };
  add(recipe.parameters, fields.get('parameters'));
  for (const [ref, setting] of readMapping(fields.get('models'), 'any') ?? []) {
    const model = recipe.models?.find((entry) => entry.model === ref);
    if (model) add(model.parameters, setting);
    else complain(setting, `${setting.where} is not one of the recipe’s models.`, 'Correct the name.');
  }
  for (const [name, read] of Object.entries(EXTENSIONS)) {
    const found = fields.get(yamlKey(name));
    const value = found && read(found);
    if (value !== undefined) Object.assign(recipe.amalgam, { [name]: value });
  }
}

/** Patterns of tensor names: at least one, each a text. */
function readPatterns(field: Field): string[] | undefined {
  const items = readList(field);
  if (items?.length === 0) {
    return complain(field, `${field.where} is empty.`, 'Name at least one tensor, or remove it.');
  }
  return items?.map(readText).filter((text) => text !== undefined);
}

// `tokenizer_source` and `tokenizer` of mergekit's schema (its `tokenizer/config.py`, version 0.1.4).

type Tokenizer = Pick<Recipe, 'tokenizerSource' | 'tokenizer'>;

const MAX_MULTIPLE = 65_536;
const MAX_TOKEN_ID = 2 ** 31 - 1;

/** Reads either of the two keys, which mean the same: one of them at most. */
function readTokenizer(legacy: Field | undefined, field: Field | undefined): Tokenizer {
  if (legacy && field) {
    complain(
      field,
      'The recipe has both tokenizer_source and tokenizer.',
      'Keep one: tokenizer: {source: …} says what tokenizer_source does, and more.',
    );
    return {};
  }
  if (legacy) return sourceOf(readModelRef(legacy));
  const fields = readMapping(field, ['source', 'tokens', 'pad_to_multiple_of']);
  if (!fields) return {};
  const source = fields.get('source');
  const tokenizer: NonNullable<Recipe['tokenizer']> = {};
  const tokens = fields.get('tokens');
  if (tokens) {
    const read = [...(readMapping(tokens, 'any') ?? [])].map(([token, entry]) => readToken(token, entry));
    tokenizer.tokens = read.filter((entry) => entry !== undefined);
  }
  assign(tokenizer, 'padToMultipleOf', readInteger(fields.get('pad_to_multiple_of'), 1, MAX_MULTIPLE));
  return {
    // mergekit's default
    ...sourceOf(source ? readModelRef(source) : 'union'),
    ...(Object.keys(tokenizer).length > 0 ? { tokenizer } : {}),
  };
}

function sourceOf(source: string | undefined): Tokenizer {
  return source === undefined ? {} : { tokenizerSource: source };
}

function readToken(token: string, entry: Field): RecipeToken | undefined {
  if (token === '') {
    return complain(entry, `${entry.where} names an empty token.`, 'Write the token as a string.');
  }
  const fields = readMapping(entry, ['source', 'force']);
  const field = fields && need(fields, entry, 'source');
  const source = field && readTokenSource(field);
  const forceField = fields?.get('force');
  const force = readNumber(forceField);
  if (forceField && typeof force !== 'boolean') {
    return complain(forceField, `${forceField.where} is not true or false.`, 'Write true or false.');
  }
  if (!source) return undefined;
  return force === true ? { token, source, force } : { token, source };
}

function readTokenSource(field: Field): TokenSource | undefined {
  if (!isMapping(field)) {
    const model = readModelRef(field);
    return model === undefined ? undefined : { kind: 'model', model };
  }
  const fields = readMapping(field, ['kind', 'model', 'token', 'token_id']);
  const kind = fields && readChoice(need(fields, field, 'kind'), ['zero', 'model_token']);
  if (!fields || !kind) return undefined;
  const [model, token, tokenId] = ['model', 'token', 'token_id'].map((name) => fields.get(name));
  if (kind === 'zero') {
    const extra = model ?? token ?? tokenId;
    if (!extra) return { kind };
    return complain(extra, `${extra.where} has no effect with kind: zero.`, 'Remove it.');
  }
  const ref = readModelRef(need(fields, field, 'model'));
  if ((token === undefined) === (tokenId === undefined)) {
    return complain(
      field,
      `${field.where} needs either token or token_id, one of the two.`,
      'Name the token of the model whose embedding is taken.',
    );
  }
  if (ref === undefined) return undefined;
  if (token) {
    const text = readText(token);
    return text === undefined ? undefined : { kind, model: ref, token: text };
  }
  const id = readInteger(tokenId!, 0, MAX_TOKEN_ID);
  return id === undefined ? undefined : { kind, model: ref, tokenId: id };
}
