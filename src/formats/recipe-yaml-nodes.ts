/** Reading the YAML tree of a recipe: every complaint gets its place in the text, and nothing is dropped unseen. */
import { type Document, isAlias, isMap, isScalar, isSeq, type LineCounter, type Node } from 'yaml';
import { AmalgamError } from '../errors';
import { displayName } from './names';

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
  node: Node | null;
  at: Node | null;
  /** The path to it, in words: `models[0].parameters.weight`. */
  where: string;
}

export function complain(reader: RecipeReader, field: Field, message: string, hint: string): undefined {
  const offset = (field.node ?? field.at)?.range?.[0] ?? 0;
  const { line, col } = reader.lines.linePos(offset);
  reader.problems.push({ line, column: col, message, hint });
  return undefined;
}

/** The node itself, or what its alias stands for. @throws AmalgamError `LimitExceeded` */
function follow(reader: RecipeReader, node: Node | null): Node | null {
  if (++reader.nodes > MAX_NODES) throw tooLarge(`it has more than ${MAX_NODES} values`);
  if (!isAlias(node)) return node;
  if (++reader.aliases > MAX_ALIASES) throw tooLarge(`it repeats more than ${MAX_ALIASES} aliases`);
  return follow(reader, (node.resolve(reader.document) as Node | undefined) ?? null);
}

function tooLarge(why: string): AmalgamError {
  return new AmalgamError('LimitExceeded', `The recipe is too large: ${why}.`, 'Shorten it.');
}

/**
 * The fields of a mapping by name. Unknown names are problems; `unsupported` names those Amalgam knows but does not do
 * (name → what to do instead). Among `known` names an empty or null value is as good as none.
 */
export function readMapping(
  reader: RecipeReader,
  field: Field,
  known: readonly string[] | 'any',
  unsupported: ReadonlyMap<string, string> = new Map(),
): Map<string, Field> | undefined {
  const node = follow(reader, field.node);
  if (!isMap(node)) {
    const allowed = known === 'any' ? '' : ` with ${known.join(', ')}`;
    return complain(
      reader,
      field,
      `${field.where} is not a mapping.`,
      `Write “name: value” lines${allowed}.`,
    );
  }
  const fields = new Map<string, Field>();
  for (const pair of node.items) {
    const key = pair.key as Node | null;
    const name = isScalar(key) ? String(key.value) : '';
    const child = { node: pair.value as Node | null, at: key, where: join(field.where, name) };
    const keyField = { ...child, node: key };
    if (!isScalar(key))
      complain(reader, keyField, `A name in ${field.where} is not a word.`, 'Use plain names.');
    else if (fields.has(name))
      complain(reader, keyField, `${child.where} is given twice.`, 'Remove one of the two.');
    else if (unsupported.has(name)) {
      complain(reader, keyField, `${child.where} is not supported by Amalgam yet.`, unsupported.get(name)!);
    } else if (known !== 'any' && !known.includes(name)) {
      const hint = `Known here: ${known.join(', ')}. Remove it or correct its spelling.`;
      complain(reader, keyField, `${child.where} is not a known setting.`, hint);
    } else if (known === 'any' || !isNull(child.node)) fields.set(name, child);
  }
  return fields;
}

/** Optional settings may be left empty, as in mergekit. */
function isNull(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

function join(where: string, name: string): string {
  return where === 'The recipe' ? displayName(name, 80) : `${where}.${displayName(name, 80)}`;
}

/** The items of a list. */
export function readList(reader: RecipeReader, field: Field): Field[] | undefined {
  const node = follow(reader, field.node);
  if (!isSeq(node))
    return complain(reader, field, `${field.where} is not a list.`, 'Begin each entry with “- ”.');
  return node.items.map((item, i) => ({
    node: item as Node | null,
    at: field.node,
    where: `${field.where}[${i}]`,
  }));
}

/** A scalar's value: text, number or boolean. Empty, null, NaN and infinite values are problems. */
export function readScalar(reader: RecipeReader, field: Field): string | number | boolean | undefined {
  const node = follow(reader, field.node);
  if (!isScalar(node) || node.value === null) {
    return complain(reader, field, `${field.where} has no value.`, 'Give it a value or remove it.');
  }
  const { value } = node;
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return complain(reader, field, `${field.where} is ${value}.`, 'Give a finite number.');
  }
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return complain(reader, field, `${field.where} is not a text, number or boolean.`, 'Write a plain value.');
}

export function readText(reader: RecipeReader, field: Field): string | undefined {
  const value = readScalar(reader, field);
  if (value === undefined || (typeof value === 'string' && value !== '')) return value as string | undefined;
  return complain(reader, field, `${field.where} is not a text.`, 'Put it in quotes if it is meant as one.');
}

/** An integer in [least, most]. */
export function readInteger(
  reader: RecipeReader,
  field: Field,
  least: number,
  most: number,
): number | undefined {
  const value = readScalar(reader, field);
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  return complain(
    reader,
    field,
    `${field.where} is not an integer from ${least} to ${most}.`,
    'Correct the number.',
  );
}

/** One of a few words. */
export function readChoice<const T extends string>(
  reader: RecipeReader,
  field: Field,
  choices: readonly T[],
): T | undefined {
  const value = readScalar(reader, field);
  if (value === undefined) return undefined;
  const found = choices.find((choice) => choice === value);
  return (
    found ??
    complain(
      reader,
      field,
      `${field.where} cannot be “${displayName(String(value), 80)}”.`,
      `Choose one of ${choices.join(', ')}.`,
    )
  );
}

/** true or false. */
export function readFlag(reader: RecipeReader, field: Field): boolean | undefined {
  const value = readScalar(reader, field);
  if (value === undefined || typeof value === 'boolean') return value;
  return complain(reader, field, `${field.where} is neither true nor false.`, 'Write true or leave it out.');
}

export function isMapping(reader: RecipeReader, field: Field): boolean {
  return isMap(follow(reader, field.node));
}

export function isList(reader: RecipeReader, field: Field): boolean {
  return isSeq(follow(reader, field.node));
}

/** A model reference, `path[@revision][+adapter[@revision]]`, kept as written. */
export function readModelRef(reader: RecipeReader, field: Field | undefined): string | undefined {
  if (!field) return undefined;
  if (isMapping(reader, field)) {
    return complain(
      reader,
      field,
      `${field.where} is a mapping.`,
      'Write the model as one text: path@revision+adapter.',
    );
  }
  const text = readText(reader, field);
  if (text === undefined) return undefined;
  const parts = text.split('+');
  if (parts.length <= 2 && parts.every((part) => /^[^@]+(@[^@]+)?$/.test(part))) return text;
  return complain(
    reader,
    field,
    `${field.where} is not a model: it has an empty part, or more than one adapter.`,
    'Write path, path@revision or path+adapter.',
  );
}

/** A field that must be there. */
export function need(
  reader: RecipeReader,
  fields: Map<string, Field>,
  parent: Field,
  name: string,
): Field | undefined {
  const field = fields.get(name);
  return field ?? complain(reader, parent, `${parent.where} has no ${name}.`, `Add “${name}: …”.`);
}

/** Sets what is there. */
export function assign<T, K extends keyof T>(target: T, key: K, value: T[K] | undefined): void {
  if (value !== undefined) target[key] = value;
}
