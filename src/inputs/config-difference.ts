/** Two config.json field by field: what differs, and whether it matters. */

import { AmalgamError } from '../errors';
import type { ModelConfig } from '../formats/model-config';
import { displayName } from '../formats/names';
import { isJsonNumber, type JsonObject, type JsonValue } from '../formats/strict-json';
import { textConfig } from '../models/claim';
import { FieldMissing } from '../models/config-reader';
import { resolveArchitecture } from '../models/resolution';
import type { ConfigComparison, ConfigDifference } from '../reports/models';

/** Fields on how a file was made or a model is trained, which do not affect what it computes. */
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

/** Old spelling → the key of the same setting in transformers 5. */
const SPELLINGS: readonly [old: string, current: string][] = [
  ['rope_theta', 'rope_parameters.rope_theta'],
  ['rope_scaling', 'rope_parameters'],
  ['torch_dtype', 'dtype'],
];

/** Longest value that is put into a sentence. */
const MOST_TEXT = 80;

/** Compares two configs. A model without one is reported as such. */
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
  const otherwise = resolvedDifferences(textConfig(base), textConfig(tuned));
  for (const difference of differences) {
    if (otherwise && isAbsentDefault(difference, otherwise)) difference.harmless = true;
  }
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

/** Whether one side leaves out what has the same effect as the other's value: the default of the family. */
function isAbsentDefault(
  { field, base, finetuned }: ConfigDifference,
  otherwise: readonly string[],
): boolean {
  const name = field.replace(/^text_config\./, '').split('.')[0]!;
  if ((base !== null && finetuned !== null) || !COMPUTING.test(name) || ELSEWHERE.test(name)) return false;
  const group = ROPE.includes(name) ? ROPE : [name];
  return !otherwise.some((words) => group.some((member) => words.startsWith(`${displayName(member)} `)));
}

/** True for a field that one side has and the other stores under its other name, with the same value. */
function isRespelled(
  field: string,
  one: ReadonlyMap<string, JsonValue>,
  other: ReadonlyMap<string, JsonValue>,
): boolean {
  const value = one.get(field);
  if (value === undefined || other.has(field)) return false;
  // `rope_parameters` besides the base are the defaults where the other side has no scaling
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

/** Fields that affect what a model computes with its weights, for models whose config is not known field by field. */
const COMPUTING =
  /(?:^|[._])(?:rope|rotary|theta|eps|epsilon|act|activation|softcap\w*|heads?|head_dim|groups|window|scale|scaling|multipliers?|factor|topk|alibi|bias|types|pattern|interval|scalar)(?:$|[._])|num_experts_per_tok|relative_attention|feed_forward_proj|num_key_value_heads|num_attention_heads|head_dim|layer_norm|hidden_act|softcapping/;
/** Of these, those that change what is computed where one config has them and the other leaves them out. */
const ALONE = /rope|theta|window|softcap|scaling|eps(?:ilon)?$|hidden_act|activation/;
/** Fields of rotary positions, which are one setting in several spellings. */
const ROPE: readonly string[] = ['rope_theta', 'rope_scaling', 'rope_parameters', 'rotary_emb_base'];
/** Other fields in which two models differ: sizes and names, which are compared elsewhere. */
const ELSEWHERE =
  /^(?:vocab_size|tie_word_embeddings|model_type|architectures|auto_map|num_hidden_layers|n_layers?|num_layers|\w*_token_id|id2label|label2id)$/;

const computed = new WeakMap<ModelConfig, WeakMap<ModelConfig, string[]>>();

/**
 * In what two models compute otherwise with the same weights, by their configs: `field x instead of y`, x the second model's.
 * An absent field has the default of its family, so that a field matters where the architecture that is run would be another with
 * the first model's value; for a model that cannot be run its name decides.
 */
export function computedOtherwise(base: ModelConfig, other: ModelConfig): string[] {
  const known = computed.get(base)?.get(other);
  if (known) return known;
  const found = [
    ...(resolvedDifferences(textConfig(base), textConfig(other)) ?? namedDifferences(base, other)),
    ...unlikeLabels(base, other),
  ];
  computed.set(base, (computed.get(base) ?? new WeakMap<ModelConfig, string[]>()).set(other, found));
  return found;
}

/** Rows of a classifier's head that stand for other labels; `LABEL_0` and so on say nothing. */
function unlikeLabels(base: ModelConfig, other: ModelConfig): string[] {
  const [mine, theirs] = [other, base].map(({ raw }) => raw.get('id2label'));
  const isNamed = (labels: JsonValue | undefined) =>
    labels instanceof Map && ![...labels.values()].every((name) => /^LABEL_\d+$/.test(String(name)));
  if (!isNamed(mine) || !isNamed(theirs) || same(mine, theirs)) return [];
  return [difference('id2label', mine, theirs)];
}

type RunConfig = ReturnType<typeof textConfig>;

function resolvedDifferences(base: RunConfig, other: RunConfig): string[] | undefined {
  const [mine, theirs] = [arithmeticOf(other), arithmeticOf(base)];
  if (mine === undefined || theirs === undefined) return undefined;
  const fields = [...new Set([...base.raw.keys(), ...other.raw.keys()])].filter(
    (field) =>
      !ELSEWHERE.test(field) && !BOOKKEEPING.has(field) && !same(base.raw.get(field), other.raw.get(field)),
  );
  const groups = [
    fields.filter((f) => ROPE.includes(f)),
    ...fields.filter((f) => !ROPE.includes(f)).map((f) => [f]),
  ];
  return groups.flatMap((group) => {
    if (group.length === 0) return [];
    // a switch without its numbers may change nothing in the one model, and does in the other
    const changed = [arithmeticWith(other, base, group), arithmeticWith(base, other, group)];
    const isKnown = COMPUTING.test(group[0]!);
    if ([mine, theirs].every((own, i) => changed[i] === own || (changed[i] === undefined && !isKnown)))
      return [];
    if (!ROPE.includes(group[0]!))
      return [difference(group[0]!, other.raw.get(group[0]!), base.raw.get(group[0]!))];
    const [a, b] = [other, base].map(({ raw: all }) => ropeOf(all));
    return ['rope_theta', 'rope_scaling']
      .filter((field) => !same(a!.get(field), b!.get(field)))
      .map((field) => difference(field, a!.get(field), b!.get(field)));
  });
}

/** {@link arithmeticOf} a config with some fields of another. */
function arithmeticWith(config: RunConfig, from: RunConfig, fields: readonly string[]): string | undefined {
  const raw = new Map(config.raw);
  for (const field of fields) {
    const value = from.raw.get(field);
    if (value === undefined) raw.delete(field);
    else raw.set(field, value);
  }
  return arithmeticOf({ ...config, raw });
}

/** Description of the computation, without names and sizes of both ends; undefined where it is not known. */
function arithmeticOf(config: RunConfig): string | undefined {
  try {
    const { vocab: _, maxPositions: __, final, ...rest } = resolveArchitecture(config, { masked: true });
    return JSON.stringify({ ...rest, final: { ...final, head: '', tied: false, bias: null } });
  } catch (thrown) {
    if (thrown instanceof AmalgamError) return undefined;
    throw thrown;
  }
}

/** Base and scaling of rotary positions in one spelling. */
function ropeOf(raw: JsonObject): Map<string, JsonValue> {
  const fields = new Map<string, JsonValue>();
  const scaling = new Map<string, JsonValue>();
  for (const key of ['rope_scaling', 'rope_parameters']) {
    const value = raw.get(key);
    if (value instanceof Map)
      for (const [name, member] of value) scaling.set(name === 'type' ? 'rope_type' : name, member);
  }
  const theta = scaling.get('rope_theta') ?? raw.get('rope_theta') ?? raw.get('rotary_emb_base');
  scaling.delete('rope_theta');
  if (theta !== undefined) fields.set('rope_theta', theta);
  if (scaling.size > 0 && !(scaling.size === 1 && scaling.get('rope_type') === 'default')) {
    fields.set('rope_scaling', new Map([...scaling].sort(([a], [b]) => (a < b ? -1 : 1))));
  }
  return fields;
}

function difference(field: string, mine: JsonValue | undefined, theirs: JsonValue | undefined): string {
  const text = (value: JsonValue | undefined) =>
    value !== undefined ? short(jsonText(value)) : field === 'rope_scaling' ? 'none' : 'the default';
  return `${displayName(field)} ${text(mine)} instead of ${text(theirs)}`;
}

/** Defaults of the configuration classes of models that cannot be run (transformers configuration_t5.py and its like). */
const DEFAULTS: readonly (readonly [types: RegExp, fields: Readonly<Record<string, string>>])[] = [
  [/^t5$/, { feed_forward_proj: '"relu"' }],
  [/^u?mt5$/, { feed_forward_proj: '"gated-gelu"' }],
  [/^u?m?t5$/, { layer_norm_epsilon: '0.000001', relative_attention_max_distance: '128', num_heads: '8' }],
  [/^(?:m?bart|pegasus|marian)$/, { activation_function: '"gelu"', scale_embedding: 'false' }],
  [/^(?:m2m_100|nllb)$/, { activation_function: '"relu"', scale_embedding: 'true' }],
  [/^(?:electra|mpnet|longformer)$/, { layer_norm_eps: '1e-12', hidden_act: '"gelu"' }],
  [/^deberta(?:-v2)?$/, { layer_norm_eps: '1e-7', hidden_act: '"gelu"' }],
];

function namedDifferences(base: ModelConfig, other: ModelConfig): string[] {
  const type = base.modelType ?? '';
  const defaults = Object.assign({}, ...DEFAULTS.filter(([types]) => types.test(type)).map(([, all]) => all));
  const needed = [base, other].map((config) => neededField(textConfig(config)));
  const said = compareConfigs(base, other)
    .differences.filter(({ field, base: a, finetuned: b, harmless }) => {
      const orElse: string | undefined = defaults[field];
      if (harmless || (!COMPUTING.test(field) && orElse === undefined)) return false;
      if (a !== null && b !== null) return true;
      if (orElse !== undefined) return !isText(a ?? orElse, b ?? orElse);
      return needed.includes(field) || (ALONE.test(field) && ![a, b].includes('false'));
    })
    .map(
      ({ field, base: a, finetuned: b }) =>
        `${field} ${b === null ? 'not said' : b} instead of ${a === null ? 'not said' : a}`,
    );
  const thetas = [base.ropeTheta, other.ropeTheta];
  if (thetas[0] !== thetas[1] && !thetas.includes(undefined) && !said.some((s) => s.includes('rope_theta'))) {
    said.push(`rope_theta ${thetas[1]} instead of ${thetas[0]}`);
  }
  return said;
}

/** The field for want of which a model of a known type cannot be run. */
function neededField(config: RunConfig): string | undefined {
  try {
    resolveArchitecture(config, { masked: true });
  } catch (thrown) {
    if (!(thrown instanceof AmalgamError)) throw thrown;
    if (thrown.cause instanceof FieldMissing) return thrown.cause.message;
  }
  return undefined;
}

/** Whether two values are written alike, or are the same number. */
function isText(a: string, b: string): boolean {
  return a === b || Number(a) === Number(b);
}

function same(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a instanceof Map && b instanceof Map) {
    return a.size === b.size && [...a].every(([key, value]) => same(value, b.get(key)));
  }
  return equal(a, b);
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
