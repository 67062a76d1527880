/**
 * Recipes we write, checked against mergekit's own schema as data (its `config.py` and `tokenizer/config.py`, version 0.1.4; it
 * drops unknown keys; numbers may be texts and booleans): it accepts every recipe that we do not report as refused.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { Recipe } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import { parseRecipe } from '../formats/recipe-yaml';
import type { ParameterSpec } from './method';
import { exportWarnings } from './method-export';
import { methodById, methods } from './methods';

/** A type: a name below, a list of one, a mapping of one, or the members that are known. */
type Schema =
  | 'text'
  | 'number'
  | 'integer'
  | 'boolean'
  | { list: Schema }
  | { each: Schema }
  | Members
  | Schema[];
interface Members {
  required?: Record<string, Schema>;
  optional: Record<string, Schema>;
}

const REPOSITORY: Schema = { required: { path: 'text' }, optional: { revision: 'text' } };
const MODEL: Schema = [
  'text',
  {
    required: { model: ['text', REPOSITORY] },
    optional: { lora: ['text', REPOSITORY], override_architecture: 'text' },
  },
];
const NUMBERS: Schema = ['number', { list: 'number' }];
const PARAMETERS: Schema = {
  each: [NUMBERS, { list: { required: { value: NUMBERS }, optional: { filter: 'text' } } }],
};
const INPUT = { required: { model: MODEL }, optional: { parameters: PARAMETERS } };
const SLICE: Schema = {
  required: {
    sources: {
      list: {
        required: { model: MODEL, layer_range: { list: 'integer' } },
        optional: { parameters: PARAMETERS },
      },
    },
  },
  optional: { base_model: MODEL, residual_weight: 'number', parameters: PARAMETERS },
};
const TOKEN_SOURCE: Schema = [
  MODEL,
  { required: { kind: 'text', model: MODEL }, optional: { token: 'text', token_id: 'integer' } },
  { required: { kind: 'text' }, optional: {} },
];
const CONFIGURATION: Schema = {
  required: { merge_method: 'text' },
  optional: {
    slices: { list: SLICE },
    models: { list: INPUT },
    parameters: PARAMETERS,
    base_model: MODEL,
    dtype: 'text',
    out_dtype: 'text',
    tokenizer_source: MODEL,
    tokenizer: {
      optional: {
        source: MODEL,
        tokens: { each: { required: { source: TOKEN_SOURCE }, optional: { force: 'boolean' } } },
        pad_to_multiple_of: 'integer',
      },
    },
    chat_template: 'text',
  },
};

const isNumber = (value: unknown) =>
  typeof value === 'boolean' ||
  (value !== '' && ['number', 'string'].includes(typeof value) && Number.isFinite(Number(value)));
const SCALARS = {
  text: (value: unknown) => typeof value === 'string',
  number: isNumber,
  integer: (value: unknown) => isNumber(value) && Number.isInteger(Number(value)),
  boolean: (value: unknown) => typeof value === 'boolean',
};

function fits(value: unknown, schema: Schema): boolean {
  if (typeof schema === 'string') return SCALARS[schema](value);
  if (Array.isArray(schema)) return schema.some((one) => fits(value, one));
  if ('list' in schema) return Array.isArray(value) && value.every((item) => fits(item, schema.list));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const members = value as Record<string, unknown>;
  if ('each' in schema) return Object.values(members).every((item) => fits(item, schema.each));
  return (
    Object.entries(schema.required ?? {}).every(([key, type]) => fits(members[key], type)) &&
    Object.entries(schema.optional).every(([key, type]) => members[key] == null || fits(members[key], type))
  );
}

/** Whether mergekit takes the text; unknown keys are ignored. */
const isTaken = (text: string) =>
  parseAllDocuments(text).every((document) => fits(document.toJS(), CONFIGURATION));

const refuses = (recipe: Recipe) => exportWarnings(recipe, methodById).some(({ refused }) => refused);

const EXAMPLES = new URL('../ui/gallery/recipes/', import.meta.url);

describe('mergekit’s schema', () => {
  test('refuses what mergekit refuses', () => {
    const linear = 'merge_method: linear\nmodels: [{model: a, parameters: {weight: 1}}]\n';
    expect(isTaken(linear)).toBe(true);
    expect(isTaken(`${linear}parameters: {normalize: yes, t: [0, "1"]}\nnotes: {x: 1}\n`)).toBe(false);
    expect(isTaken(`${linear}parameters: {normalize: true, t: [0, "1"]}\nnotes: {x: 1}\n`)).toBe(true);
    expect(isTaken(`${linear}parameters: {semantics: peft}\n`)).toBe(false);
    expect(isTaken(`${linear}dtype: 3\n`)).toBe(false);
  });

  test.each(readdirSync(EXAMPLES).filter((name) => name.endsWith('.yml')))(
    'takes our export of %s',
    (name) => {
      const { recipe } = parseRecipe(readFileSync(new URL(name, EXAMPLES), 'utf8'));
      expect(isTaken(formatRecipe(recipe!))).toBe(true);
    },
  );

  const samples = (spec: ParameterSpec): (number | boolean | string)[] => {
    if (spec.kind === 'choice') return spec.choices.map((choice) => choice.value);
    if (spec.kind === 'text') return ['self'];
    return spec.kind === 'boolean' ? [true, false] : [spec.default ?? 0.5];
  };
  const every = methods.flatMap((method) => [
    ...Object.entries(method.parameters).flatMap(([name, spec]) =>
      samples(spec).map((value) => ({ method: method.id, name, value, ofModel: false })),
    ),
    ...Object.entries(method.modelParameters).flatMap(([name, spec]) =>
      samples(spec).map((value) => ({ method: method.id, name, value, ofModel: true })),
    ),
  ]);

  test('takes every parameter of every method, at the recipe and at a model', () => {
    expect(every.length).toBeGreaterThan(100);
    const wrong = every.filter(({ method, name, value, ofModel }) => {
      const own = { [name]: value };
      const recipe: Recipe = {
        mergeMethod: method,
        baseModel: 'base',
        models: [{ model: 'a', parameters: ofModel ? own : {} }],
        parameters: ofModel ? {} : own,
        amalgam: { seed: 3, include: ['*.mlp.*'], gguf: 'Q8_0' },
      };
      return !isTaken(formatRecipe(recipe));
    });
    expect(wrong).toEqual([]);
  });

  test('and says so where it does not: a word in a slice', () => {
    const source = {
      model: 'a',
      layerRange: [0, 2] as [number, number],
      parameters: { importance: 'wanda' },
    };
    const recipe: Recipe = {
      mergeMethod: 'ties',
      baseModel: 'a',
      slices: [{ sources: [source], parameters: { semantics: 'peft' } }],
      parameters: {},
      amalgam: {},
    };
    expect(isTaken(formatRecipe(recipe))).toBe(false);
    expect(refuses(recipe)).toBe(true);
  });
});
