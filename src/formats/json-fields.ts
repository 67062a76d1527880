/** Reading single fields of a config file: absent and null are the same, anything of the wrong kind is an error. */
import { AmalgamError, type ErrorCode } from '../errors';
import { displayName } from './names';
import {
  isJsonNumber,
  type JsonObject,
  type JsonRules,
  type JsonValue,
  parseStrictJson,
  strictInteger,
} from './strict-json';

/** Longest config text: configs with label tables reach about 2 MB. */
const MAX_CONFIG_LENGTH = 16 * 1024 * 1024;

const CONFIG_RULES: JsonRules = {
  code: 'JsonInvalid',
  maxLength: MAX_CONFIG_LENGTH,
  maxString: MAX_CONFIG_LENGTH,
  // transformers writes configs with Python's json module, e.g. Mamba2's `time_step_limit: [0.0, Infinity]`.
  pythonNumbers: true,
};

/** An object of a config file, with what an error message needs. */
export interface ConfigFields {
  object: JsonObject;
  fileName: string;
  /** Code of errors about a field. */
  code: ErrorCode;
}

/** Parses a config file, whose root must be an object. @throws AmalgamError `JsonInvalid`, `DuplicateKey`, `code` */
export function parseConfigFile(text: string, fileName: string, code: ErrorCode): ConfigFields {
  const object = parseStrictJson(text, fileName, CONFIG_RULES);
  if (!(object instanceof Map)) {
    throw new AmalgamError(code, `${displayName(fileName)} is not an object.`, 'Download the file again.');
  }
  return { object, fileName, code };
}

/** The text at `key`. */
export function stringField(fields: ConfigFields, key: string): string | undefined {
  const value = fields.object.get(key) ?? undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw wrongField(fields, key, 'a string');
}

export function booleanField(fields: ConfigFields, key: string): boolean | undefined {
  const value = fields.object.get(key) ?? undefined;
  if (value === undefined || typeof value === 'boolean') return value;
  throw wrongField(fields, key, 'true or false');
}

/** A finite number. */
export function numberField(fields: ConfigFields, key: string): number | undefined {
  const value = fields.object.get(key) ?? undefined;
  if (value === undefined) return undefined;
  const number = isJsonNumber(value) ? Number(value.text) : Number.NaN;
  if (Number.isFinite(number)) return number;
  throw wrongField(fields, key, 'a number');
}

/** A strict integer of at least `least`. */
export function integerField(fields: ConfigFields, key: string, least = 0): number | undefined {
  const value = fields.object.get(key) ?? undefined;
  if (value === undefined) return undefined;
  const integer = isJsonNumber(value) ? strictInteger(value.text) : undefined;
  if (integer !== undefined && integer >= least) return integer;
  throw wrongField(fields, key, `an integer from ${least}`);
}

/** A list of texts; absent is empty. */
export function stringListField(fields: ConfigFields, key: string): string[] {
  const value = fields.object.get(key) ?? [];
  if (Array.isArray(value) && value.every((item): item is string => typeof item === 'string')) return value;
  throw wrongField(fields, key, 'a list of strings');
}

/** The object at `key`. */
export function objectField(fields: ConfigFields, key: string): ConfigFields | undefined {
  const value = fields.object.get(key) ?? undefined;
  if (value === undefined) return undefined;
  if (value instanceof Map) return { ...fields, object: value };
  throw wrongField(fields, key, 'an object');
}

/** Whether a value is set: not absent, null, false, empty text, list or object. */
export function isSet(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  if (Array.isArray(value)) return value.length > 0;
  return !(value instanceof Map) || value.size > 0;
}

function wrongField(fields: ConfigFields, key: string, wanted: string): AmalgamError {
  return new AmalgamError(
    fields.code,
    `${displayName(fields.fileName)}: the field “${displayName(key)}” is not ${wanted}.`,
    'Correct the file, or get it again from its author.',
  );
}
