/** Two config.json field by field: what differs, and whether it matters. */

import type { ModelConfig } from '../formats/model-config';
import { displayName } from '../formats/names';
import { isJsonNumber, type JsonObject, type JsonValue } from '../formats/strict-json';
import type { ConfigComparison, ConfigDifference } from '../reports/models';

/** Fields that say how a file was made, or how a model is trained, not what it computes. */
const BOOKKEEPING = new Set([
  '_name_or_path',
  '_commit_hash',
  'transformers_version',
  'use_cache',
  'pretraining_tp',
  'torch_dtype',
  'dtype',
  'output_attentions',
  'output_hidden_states',
  'return_dict',
  'attention_dropout',
  'resid_pdrop',
  'embd_pdrop',
  'attn_pdrop',
  'hidden_dropout',
  'initializer_range',
]);

/** Old spelling → where transformers 5 keeps the same setting. */
const SPELLINGS: readonly [old: string, current: string][] = [
  ['rope_theta', 'rope_parameters.rope_theta'],
  ['rope_scaling', 'rope_parameters'],
  ['torch_dtype', 'dtype'],
];

/** Longest value that is put into a sentence. */
const MOST_TEXT = 80;

/** Compares two configs. A model without one is said to have none. */
export function compareConfigs(
  base: ModelConfig | undefined,
  tuned: ModelConfig | undefined,
): ConfigComparison {
  if (!base || !tuned) {
    const which = base ? 'the fine-tune has' : tuned ? 'the base has' : 'neither model has';
    return { differences: [], words: [`The configs cannot be compared: ${which} no config.json.`] };
  }
  const a = flatten(base.raw);
  const b = flatten(tuned.raw);
  const differences = [...new Set([...a.keys(), ...b.keys()])]
    .filter((field) => !equal(a.get(field), b.get(field)))
    .sort()
    .map((field) => differenceOf(field, a, b));
  return { differences, words: wordsFor(differences) };
}

/** Leaf values by their path; lists count as leaves. */
function flatten(
  object: JsonObject,
  prefix = '',
  into = new Map<string, JsonValue>(),
): Map<string, JsonValue> {
  for (const [key, value] of object) {
    if (value instanceof Map && value.size > 0) flatten(value, `${prefix}${key}.`, into);
    else if (value !== null) into.set(prefix + key, value);
  }
  return into;
}

/** Numbers by value (1e-05 is 0.00001), everything else by its text. */
function equal(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (isJsonNumber(a) && isJsonNumber(b)) return Number(a.text) === Number(b.text);
  return jsonText(a) === jsonText(b);
}

function differenceOf(
  field: string,
  a: ReadonlyMap<string, JsonValue>,
  b: ReadonlyMap<string, JsonValue>,
): ConfigDifference {
  const text = (value: JsonValue | undefined) => (value === undefined ? null : jsonText(value));
  const harmless =
    BOOKKEEPING.has(field.split('.').at(-1)!) || isRespelled(field, a, b) || isRespelled(field, b, a);
  return { field, base: text(a.get(field)), finetuned: text(b.get(field)), harmless };
}

/** True for a field that one side has and the other keeps under its other name, with the same value. */
function isRespelled(
  field: string,
  one: ReadonlyMap<string, JsonValue>,
  other: ReadonlyMap<string, JsonValue>,
): boolean {
  const value = one.get(field);
  if (value === undefined || other.has(field)) return false;
  // what `rope_parameters` says beside the base is the default where the other side has no scaling
  if (field === 'rope_parameters.rope_type') return value === 'default' && ![...other.keys()].some(isScaling);
  return SPELLINGS.some(([old, current]) => {
    const name = [
      [old, current],
      [current, old],
    ].find(([from]) => field === from || field.startsWith(`${from}.`));
    return name !== undefined && equal(value, other.get(name[1]! + field.slice(name[0]!.length)));
  });
}

function isScaling(field: string): boolean {
  return field.startsWith('rope_scaling') || field.startsWith('rope_parameters');
}

function wordsFor(differences: readonly ConfigDifference[]): string[] {
  if (differences.length === 0) return ['Both configs say the same.'];
  const serious = differences.filter(({ harmless }) => !harmless);
  const words = serious.map(({ field, base, finetuned }) => {
    const name = `“${displayName(field)}”`;
    if (base === null) return `Only the fine-tune's config has ${name}: ${short(finetuned!)}.`;
    if (finetuned === null) return `Only the base's config has ${name}: ${short(base)}.`;
    return `The config's ${name} is ${short(base)} in the base and ${short(finetuned)} in the fine-tune.`;
  });
  const rest = differences.length - serious.length;
  if (rest === 0) return words;
  const names = differences
    .filter(({ harmless }) => harmless)
    .map(({ field }) => displayName(field))
    .join(', ');
  const lead = serious.length > 0 ? 'Other differences' : 'The differences of the configs';
  return [...words, `${lead} do not change what the model computes: ${names}.`];
}

function short(text: string): string {
  return displayName(text, MOST_TEXT);
}

/** A value as JSON on one line, numbers as they were written. */
export function jsonText(value: JsonValue): string {
  if (isJsonNumber(value)) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(', ')}]`;
  if (value instanceof Map) {
    return `{${[...value].map(([key, member]) => `${JSON.stringify(key)}: ${jsonText(member)}`).join(', ')}}`;
  }
  return JSON.stringify(value);
}
