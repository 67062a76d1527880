/** Reading the YAML tree of a recipe: every complaint gets its place in the text, and nothing is dropped unseen. */
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type YAMLMap,
} from 'yaml';
import { AmalgamError, errorReport } from '../errors';
import { addressedId, isPublicAddress } from './hub-id';
import { displayName, nearestName } from './names';
import type { ParameterFilter, ParameterSetting, RecipeParameters } from './recipe';
import type { YamlData } from './yaml-text';

/** Something wrong with a recipe's text. Lines and columns count from 1. */
export interface RecipeProblem {
  line: number;
  column: number;
  message: string;
  hint: string;
}

/** Most nodes read, aliases followed: a few hundred models with all their parameters; stops alias bombs. */
const MAX_NODES = 200_000;
/** Most aliases followed (mergekit recipes repeat parameter blocks with them). */
const MAX_ALIASES = 1000;

export interface RecipeReader {
  document: Document;
  lines: LineCounter;
  problems: RecipeProblem[];
  nodes: number;
  aliases: number;
}

/** A value and the node whose place a complaint about it names. */
export interface Field {
  reader: RecipeReader;
  node: Node | null;
  at: Node | null;
  /** The path to it, in words: `models[0].parameters.weight`. */
  where: string;
}

export function complain({ reader, node, at }: Field, message: string, hint: string): undefined {
  const { line, col } = reader.lines.linePos((node ?? at)?.range?.[0] ?? 0);
  reader.problems.push({ line, column: col, message, hint });
  return undefined;
}

/** The node of a field, or what its alias stands for. @throws AmalgamError `LimitExceeded` */
function nodeOf({ reader, node }: Pick<Field, 'reader' | 'node'>): Node | null {
  if (++reader.nodes > MAX_NODES) throw tooLarge(`it has more than ${MAX_NODES} values`);
  if (!isAlias(node)) return node;
  if (++reader.aliases > MAX_ALIASES) throw tooLarge(`it repeats more than ${MAX_ALIASES} aliases`);
  return nodeOf({ reader, node: (node.resolve(reader.document) as Node | undefined) ?? null });
}

function tooLarge(why: string): AmalgamError {
  return new AmalgamError('LimitExceeded', `The recipe is too large: ${why}.`, 'Shorten it.');
}

/** Treatment of unknown names in a mapping. */
interface UnknownNames {
  /** Names that are refused, with what to do instead: leaving them out of account would be a trap. */
  refused?: ReadonlyMap<string, string>;
  /** Takes the others, which mergekit drops too. Absent: they are problems. */
  ignored?: Map<string, YamlData>;
}

/** The fields of a mapping by name, merge keys (`<<`) followed. Among `known` names an empty or null value is as good as none. */
export function readMapping(
  field: Field | undefined,
  known: readonly string[] | 'any',
  { refused = new Map(), ignored }: UnknownNames = {},
): Map<string, Field> | undefined {
  if (!field) return undefined;
  const node = nodeOf(field);
  if (!isMap(node)) {
    const allowed = known === 'any' ? '' : ` with ${known.join(', ')}`;
    return complain(field, `${field.where} is not a mapping.`, `Write “name: value” lines${allowed}.`);
  }
  const fields = new Map<string, Field>();
  for (const { key, value, inherited } of pairsOf(field, node)) {
    const name = isScalar(key) ? String(key.value) : '';
    const child = { ...field, node: value, at: key, where: join(field.where, name) };
    const keyField = { ...child, node: key };
    if (!isScalar(key)) complain(keyField, `A name in ${field.where} is not a word.`, 'Use plain names.');
    else if (fields.has(name)) {
      if (!inherited) complain(keyField, `${child.where} is given twice.`, 'Remove one of the two.');
    } else if (known !== 'any' && !known.includes(name)) {
      const hint = refused.get(name);
      if (isNull(child.node) && hint === undefined && ignored) continue;
      if (hint !== undefined) complain(keyField, `${child.where} does not belong here.`, hint);
      else if (ignored) ignored.set(name, plainData(child));
      else {
        const names = `Known here: ${known.join(', ')}. Remove it or correct its spelling.`;
        complain(keyField, `${child.where} is not a known setting.`, names);
      }
    } else if (known === 'any' || !isNull(child.node)) fields.set(name, child);
  }
  return fields;
}

interface PairOf {
  key: Node | null;
  value: Node | null;
  inherited: boolean;
}

/** The pairs of a mapping, its own first; behind them those of its merge keys (YAML 1.1, as PyYAML reads them). */
function pairsOf(field: Field, node: YAMLMap): PairOf[] {
  const own: PairOf[] = [];
  const inherited: PairOf[] = [];
  for (const pair of node.items) {
    const [key, value] = [pair.key as Node | null, pair.value as Node | null];
    if (!isScalar(key) || key.value !== '<<' || key.type !== 'PLAIN') {
      own.push({ key, value, inherited: false });
      continue;
    }
    const target = nodeOf({ ...field, node: value });
    for (const source of isSeq(target) ? target.items : [target]) {
      const map = nodeOf({ ...field, node: source as Node | null });
      if (isMap(map)) inherited.push(...pairsOf(field, map).map((p) => ({ ...p, inherited: true })));
      else
        complain(
          { ...field, node: key },
          `“<<” in ${field.where} names no mapping.`,
          'Write <<: *name of an anchor (&name) on a mapping.',
        );
    }
  }
  return [...own, ...inherited];
}

/** Value of a field as plain data, whatever it is. @throws AmalgamError `LimitExceeded` */
function plainData(field: Field): YamlData {
  const node = nodeOf(field);
  if (isMap(node)) {
    return Object.fromEntries(
      pairsOf(field, node).map(({ key, value }) => [String(key), plainData({ ...field, node: value })]),
    );
  }
  if (isSeq(node)) return node.items.map((item) => plainData({ ...field, node: item as Node | null }));
  const value = isScalar(node) ? node.value : null;
  return typeof value === 'number' || typeof value === 'boolean' ? value : String(value ?? '');
}

/** Optional settings may be left empty, as in mergekit. */
function isNull(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

function join(where: string, name: string): string {
  return where === 'The recipe' ? displayName(name, 80) : `${where}.${displayName(name, 80)}`;
}

/** The items of a list. */
export function readList(field: Field | undefined): Field[] | undefined {
  if (!field) return undefined;
  const node = nodeOf(field);
  if (!isSeq(node)) return complain(field, `${field.where} is not a list.`, 'Begin each entry with “- ”.');
  return node.items.map((item, i) => ({
    ...field,
    node: item as Node | null,
    at: field.node,
    where: `${field.where}[${i}]`,
  }));
}

/** A scalar's value: text, number or boolean. Empty, null, NaN and infinite values are problems; no field has none. */
export function readScalar(field: Field | undefined): string | number | boolean | undefined {
  if (!field) return undefined;
  const node = nodeOf(field);
  if (!isScalar(node) || node.value === null) {
    return complain(field, `${field.where} has no value.`, 'Give it a value or remove it.');
  }
  const { value } = node;
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return complain(field, `${field.where} is ${value}.`, 'Give a finite number.');
  }
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return complain(field, `${field.where} is not a string, number or boolean.`, 'Write a plain value.');
}

export function readText(field: Field | undefined): string | undefined {
  const value = readScalar(field);
  if (value === undefined || (typeof value === 'string' && value !== '')) return value as string | undefined;
  return complain(field!, `${field!.where} is not a string.`, 'Put it in quotes if it is meant as one.');
}

/** A number as Python's `float` reads one out of a text. */
const NUMBER_TEXT = /^[+-]?(\d+(_\d+)*(\.(\d+(_\d+)*)?)?|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?$/i;
/** Further words for true and false in YAML 1.1, and so in PyYAML. */
const WORDS = new Map([
  ...['yes', 'on'].map((word) => [word, true] as const),
  ...['no', 'off'].map((word) => [word, false] as const),
]);

/**
 * A scalar as mergekit's schema takes the value of a parameter: numbers may be written as text, and `yes`, `no`, `on`
 * and `off` are true and false.
 */
export function readNumber(field: Field | undefined): string | number | boolean | undefined {
  const value = readScalar(field);
  if (typeof value !== 'string') return value;
  const node = nodeOf(field!);
  const word = isScalar(node) && node.type === 'PLAIN' ? WORDS.get(value.toLowerCase()) : undefined;
  if (word !== undefined) return word;
  return NUMBER_TEXT.test(value.trim()) ? Number(value.trim().replaceAll('_', '')) : value;
}

/** An integer in [least, most]. */
export function readInteger(field: Field | undefined, least: number, most: number): number | undefined {
  const value = readNumber(field);
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  const what = `is not an integer from ${least} to ${most}`;
  return complain(field!, `${field!.where} ${what}.`, 'Correct the number.');
}

/** A share above 0, at most 1. */
export function readShare(field: Field | undefined): number | undefined {
  const value = readNumber(field);
  if (value === undefined || (typeof value === 'number' && value > 0 && value <= 1)) return value;
  return complain(field!, `${field!.where} is not a number above 0, at most 1.`, 'Correct the number.');
}

/** One of a few words. */
export function readChoice<const T extends string>(
  field: Field | undefined,
  choices: readonly T[],
): T | undefined {
  const value = readScalar(field);
  const found = choices.find((choice) => choice === value);
  if (value === undefined || found !== undefined) return found;
  const what = `cannot be “${displayName(String(value), 80)}”`;
  return complain(field!, `${field!.where} ${what}.`, `Choose one of ${choices.join(', ')}.`);
}

/** true or false. */
export function readFlag(field: Field | undefined): boolean | undefined {
  const value = readScalar(field);
  if (value === undefined || typeof value === 'boolean') return value;
  return complain(field!, `${field!.where} is neither true nor false.`, 'Write true or leave it out.');
}

export function isMapping(field: Field): boolean {
  return isMap(nodeOf(field));
}

export function isList(field: Field): boolean {
  return isSeq(nodeOf(field));
}

/** A model reference, `path[@revision][+adapter[@revision]]`, as written. */
export function readModelRef(field: Field | undefined): string | undefined {
  if (!field) return undefined;
  const text = isMapping(field) ? readModelMapping(field) : readText(field);
  if (text === undefined) return undefined;
  const parts = text.split('+');
  if (parts.length <= 2 && parts.every((part) => /^[^@]+(@[^@]+)?$/.test(part))) {
    return withoutAddresses(field, parts);
  }
  return complain(
    field,
    `${field.where} is not a model: it has an empty part, or more than one adapter.`,
    'Write path, path@revision or path+adapter.',
  );
}

/** The reference with ids in place of addresses of the public Hub; the command knows those of a hub of one's own. */
function withoutAddresses(field: Field, parts: readonly string[]): string | undefined {
  try {
    return parts.map((part) => (isPublicAddress(part) ? addressedId(part)! : part)).join('+');
  } catch (thrown) {
    const { message, hint } = errorReport(thrown);
    return complain(field, message, hint);
  }
}

/** mergekit's long form of a model: `{model: {path, revision}, lora: {path, revision}}`, each also as a text. */
function readModelMapping(field: Field): string | undefined {
  const fields = readMapping(field, ['model', 'lora', 'path', 'revision', 'override_architecture']);
  if (!fields) return undefined;
  const path = fields.has('path') ? field : need(fields, field, 'model');
  const model = path && readRepository(path);
  const lora = fields.get('lora');
  const adapter = lora && readRepository(lora);
  if (model === undefined || (lora && adapter === undefined)) return undefined;
  return adapter === undefined ? model : `${model}+${adapter}`;
}

function readRepository(field: Field): string | undefined {
  if (!isMapping(field)) return readText(field);
  const fields = readMapping(field, ['path', 'revision', 'lora', 'override_architecture']);
  const path = fields && readText(need(fields, field, 'path'));
  const at = readText(fields?.get('revision'));
  return path === undefined || at === undefined ? path : `${path}@${at}`;
}

/** A field that must be there. */
export function need(
  fields: Map<string, Field>,
  parent: Field,
  name: string,
  others: Iterable<string> = [],
): Field | undefined {
  const field = fields.get(name);
  const meant = [...others].find((other) => nearestName(other, [name]) !== undefined);
  const hint = meant === undefined ? `Add “${name}: …”.` : `Write “${name}” for “${displayName(meant)}”.`;
  return field ?? complain(parent, `${parent.where} has no ${name}.`, hint);
}

/** Sets the defined values. */
export function assign<T, K extends keyof T>(target: T, key: K, value: T[K] | undefined): void {
  if (value !== undefined) target[key] = value;
}

// Parameters of a recipe read from a YAML tree: scalars, gradients and filters (mergekit's `config.py`, version 0.1.4).

const IN_FILTER = new Map([['pattern', 'Write “filter:”, which is part of a tensor’s name.']]);

/** Parameters by name; a name that is absent has no entry. */
export function readParameters(field: Field | undefined): RecipeParameters {
  const parameters: RecipeParameters = {};
  for (const [name, setting] of readMapping(field, 'any') ?? []) {
    const value = readSetting(setting);
    if (!/^[a-z]\w*$/i.test(name)) {
      complain(
        { ...setting, node: setting.at },
        `${setting.where} is not a parameter’s name.`,
        'Names are words such as weight.',
      );
    } else if (value !== undefined) parameters[name] = value;
  }
  return parameters;
}

function readSetting(field: Field): ParameterSetting | undefined {
  if (isMapping(field)) {
    const hint = 'Filters stand in a list: “- filter: …”, “  value: …”.';
    return complain(field, `${field.where} is a mapping.`, hint);
  }
  if (!isList(field)) return readNumber(field);
  const items = readList(field)!;
  if (items.length > 0 && items.every(isMapping)) {
    const filters = items.map(readFilter);
    return filters.includes(undefined) ? undefined : (filters as ParameterFilter[]);
  }
  return readGradient(field, items);
}

function readGradient(field: Field, items: Field[]): number[] | undefined {
  const values = items.map((item) => (isMapping(item) || isList(item) ? undefined : readNumber(item)));
  const points = values.map((value) => (typeof value === 'boolean' ? Number(value) : value));
  if (points.length > 0 && points.every((value) => typeof value === 'number')) return points;
  return complain(
    field,
    `${field.where} is a list of something other than numbers or filters.`,
    'A gradient is a list of numbers, [0, 0.5, 1]; filters are a list of mappings with value and filter.',
  );
}

function readFilter(item: Field): ParameterFilter | undefined {
  const fields = readMapping(item, ['filter', 'value'], { refused: IN_FILTER });
  const valueField = fields && need(fields, item, 'value');
  if (!fields || !valueField) return undefined;
  const value = isList(valueField) ? readGradient(valueField, readList(valueField)!) : readNumber(valueField);
  const filterField = fields.get('filter');
  const filter = readText(filterField);
  if (value === undefined || (filterField && filter === undefined)) return undefined;
  return filter === undefined ? { value } : { filter, value };
}
