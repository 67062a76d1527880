/**
 * Writing YAML that every reader understands alike: YAML 1.2 (ours) and YAML 1.1 (PyYAML, and so mergekit and the Hub's
 * tools), which take `no`, `1:30`, `0o17`, `1e-5` or a line separator for different things. What is written is so little of
 * YAML that it needs no library: planning a merge does not wait for one.
 */
import { AmalgamError } from '../errors';

/** Plain data that can be written as YAML. */
export type YamlData =
  | string
  | number
  | boolean
  | readonly YamlData[]
  | { readonly [key: string]: YamlData | undefined }
  /** A mapping whose keys come from elsewhere, in its order. */
  | ReadonlyMap<string, YamlData>;

/** Words that some YAML reader takes for something other than text. */
const RESERVED = /^(?:null|true|false|yes|no|on|off|y|n|nan|inf|infinity|e\d+)$/i;

/** A plain text that no reader can take for anything else: begins with a letter, no `: `, `#`, quotes or blanks. */
const PLAIN = /^[A-Za-z_](?:[\w./@+-]*[\w/])?$/;

/** A longer key is no key to a reader unless it is marked as one. */
const LONGEST_KEY = 1024;

/**
 * YAML text of `data`, ending in a line feed: mappings and lists in block style, lists of numbers on one line. Texts
 * that are not plain words are double-quoted, with everything that is not printable, and `<` and `>`, escaped: names
 * from elsewhere can neither end a string, nor hide, nor turn into HTML where the text is shown as a page.
 *
 * @throws AmalgamError `RecipeInvalid` for a number that is not finite
 */
export function yamlText(data: YamlData): string {
  const written = nodeText(data);
  return `${typeof written === 'string' ? written : written.join('\n')}\n`;
}

/** Text on the line of the key, or the lines of a block below it. */
function nodeText(data: YamlData): string | string[] {
  if (typeof data === 'string') return scalarText(data);
  if (typeof data === 'number') return numberText(data);
  if (typeof data === 'boolean') return String(data);
  if (isList(data)) {
    if (data.every((item) => typeof item === 'number')) return `[${data.map(numberText).join(', ')}]`;
    return data.flatMap((item) => behind('- ', nodeText(item)));
  }
  const entries = data instanceof Map ? [...data] : Object.entries(data);
  const lines = entries.flatMap(([key, value]: [string, YamlData | undefined]) =>
    value === undefined ? [] : pairLines(scalarText(key), nodeText(value)),
  );
  return lines.length > 0 ? lines : '{}';
}

function pairLines(key: string, value: string | string[]): string[] {
  if (key.length > LONGEST_KEY) return [`? ${key}`, ...behind(': ', value)];
  if (typeof value === 'string') return [`${key}: ${value}`];
  return [`${key}:`, ...value.map((line) => `  ${line}`)];
}

/** A node behind a mark of two characters, its other lines below the first. */
function behind(mark: string, node: string | string[]): string[] {
  if (typeof node === 'string') return [mark + node];
  return node.map((line, i) => (i === 0 ? mark : '  ') + line);
}

function isList(data: YamlData): data is readonly YamlData[] {
  return Array.isArray(data);
}

function scalarText(text: string): string {
  return PLAIN.test(text) && !RESERVED.test(text) ? text : quoted(text);
}

/** PyYAML takes a number with exponent for text unless it has a point and a sign: `1.0e-05`. */
function numberText(value: number): string {
  if (!Number.isFinite(value)) {
    throw new AmalgamError(
      'RecipeInvalid',
      `${value} cannot be written as a parameter.`,
      'Give a finite number.',
    );
  }
  if (Object.is(value, -0)) return '-0.0';
  const [mantissa, exponent] = String(value).split('e') as [string, string?];
  if (exponent === undefined) return mantissa;
  const point = mantissa.includes('.') ? mantissa : `${mantissa}.0`;
  return `${point}e${/^[+-]/.test(exponent) ? exponent : `+${exponent}`}`;
}

function quoted(text: string): string {
  const inside = text.replace(/["\\<>]|[^\x20-\x7e]/gu, (character) => {
    if (character === '"' || character === '\\') return `\\${character}`;
    if (character === '\n') return '\\n';
    if (character === '\t') return '\\t';
    if (/[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(character) && !/[<>]/.test(character)) return character;
    const code = character.codePointAt(0)!.toString(16).toUpperCase();
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
  return `"${inside}"`;
}
