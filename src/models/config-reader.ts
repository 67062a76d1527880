/** Reading a wiring's fields from a config: the first spelling the file has, else the configuration class's default. */

import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { counted } from '../formats/quantity';
import { isJsonNumber, type JsonObject, type JsonValue } from '../formats/strict-json';

/** The object at the root of config.json, and the file's name for messages. */
export interface ConfigFile {
  raw: JsonObject;
  fileName: string;
}

/** The value at a dotted path (`a.b`, `list.0`), or undefined when a part of it is not there. */
export function valueAt({ raw }: ConfigFile, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = raw;
  for (const part of path.split('.')) {
    if (Array.isArray(value)) value = value[Number(part)];
    else if (value instanceof Map) value = value.get(part);
    else return undefined;
  }
  return value;
}

/** The number of a field; null where the file has null; undefined where it is absent and there is no default. */
export function readNumber(config: ConfigFile, field: NumberField): number | null | undefined {
  for (const path of field.fields) {
    const value = valueAt(config, path);
    if (value === undefined) continue;
    if (value === null) return null;
    const number = isJsonNumber(value) ? Number(value.text) : Number.NaN;
    if (!Number.isFinite(number)) throw wrong(config, path, 'is not a number');
    return number;
  }
  return field.orElse;
}

/** A number that must be there. @throws AmalgamError `ConfigInvalid` */
export function needNumber(config: ConfigFile, field: NumberField): number {
  const value = readNumber(config, field);
  if (value === undefined || value === null) throw missing(config, field);
  return value;
}

/** A positive integer; `undefined` where it is null or absent. @throws AmalgamError `ConfigInvalid` */
export function readSize(config: ConfigFile, field: NumberField): number | undefined {
  const value = readNumber(config, field) ?? undefined;
  if (value === undefined) return undefined;
  if (!Number.isSafeInteger(value) || value < 1)
    throw wrong(config, field.fields[0]!, 'is not a positive integer');
  return value;
}

/** A positive integer that must be there. @throws AmalgamError `ConfigInvalid` */
export function needSize(config: ConfigFile, field: NumberField): number {
  const value = readSize(config, field);
  if (value === undefined) throw missing(config, field);
  return value;
}

/** A switch. Null counts as absent. @throws AmalgamError `ConfigInvalid` */
export function readFlag(config: ConfigFile, flag: FlagField): boolean {
  if (typeof flag === 'boolean') return flag;
  const value = valueAt(config, flag.field) ?? undefined;
  if (value === undefined) return flag.orElse;
  if (typeof value !== 'boolean') throw wrong(config, flag.field, 'is neither true nor false');
  return value;
}

/** A text, or undefined. @throws AmalgamError `ConfigInvalid` */
export function readText(config: ConfigFile, path: string): string | undefined {
  const value = valueAt(config, path) ?? undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw wrong(config, path, 'is not a string');
}

/** A list with one entry per layer, or undefined. @throws AmalgamError `ConfigInvalid` */
export function readLayerList(config: ConfigFile, path: string, layers: number): JsonValue[] | undefined {
  const value = valueAt(config, path) ?? undefined;
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.length === layers) return value;
  throw wrong(config, path, `is not a list of ${counted(layers, 'entry', 'entries')}, one per layer`);
}

/** The cause of an error about a field that is not there. */
export class FieldMissing extends Error {}

function missing(config: ConfigFile, { fields }: NumberField): AmalgamError {
  return wrong(config, fields[0]!, 'is missing', new FieldMissing(fields[0]));
}

/** A field with a value that cannot be. */
export function wrong(config: ConfigFile, path: string, what: string, cause?: FieldMissing): AmalgamError {
  return new AmalgamError(
    'ConfigInvalid',
    `${displayName(config.fileName)}: the field “${displayName(path)}” ${what}.`,
    'Correct the file, or get it again from its author.',
    { cause },
  );
}

/** Something the forward pass does not know. Merging goes on without it. */
export function unsupported(message: string): AmalgamError {
  return new AmalgamError(
    'ArchitectureUnsupported',
    message,
    'It can still be merged; only perplexity, generation and Hessian importance need the forward pass.',
  );
}

/** Places of a number or a switch in a config, in all its spellings. */

/**
 * A number of the config: the first of `fields` that the file has. `orElse` is the configuration class's default. An explicit
 * null in the file is an answer, too: it means that there is none, whatever `orElse` is.
 */
export interface NumberField {
  /** Dotted paths reach into objects: `rope_parameters.rope_theta`. */
  fields: readonly string[];
  /** For a file that has none of the fields; without it the field is required. */
  orElse?: number;
}

/** A switch of the config, or a fixed one. */
export type FlagField = boolean | { field: string; orElse: boolean };

/** The first of these fields that the file has; required. */
export const at = (...fields: string[]) => ({ fields });
/** The same with a default. */
export const or = <T extends number | string>(orElse: T, ...fields: string[]) => ({ fields, orElse });
export const flag = (field: string, orElse: boolean) => ({ field, orElse });
