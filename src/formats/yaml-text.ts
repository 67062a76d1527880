/**
 * Writing YAML that every reader understands alike: YAML 1.2 (ours) and YAML 1.1 (PyYAML, and so mergekit and the Hub's
 * tools), which take `no`, `1:30`, `0o17`, `1e-5` or a line separator for different things.
 */
import { Document, isScalar, type ScalarTag, visit } from 'yaml';
import { AmalgamError } from '../errors';

/** What can be written. */
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

/**
 * YAML text of `data`, ending in a line feed: mappings and lists in block style, lists of numbers on one line. Texts
 * that are not plain words are double-quoted, with everything that is not printable, and `<` and `>`, escaped: names
 * from elsewhere can neither end a string, nor hide, nor turn into HTML where the text is shown as a page.
 *
 * @throws AmalgamError `RecipeInvalid` for a number that is not finite
 */
export function yamlText(data: YamlData): string {
  const document = new Document(data, {
    schema: 'core',
    aliasDuplicateObjects: false,
    customTags: (tags) => [TEXT, NUMBER, ...tags],
  });
  visit(document, {
    Seq: (_, list) => {
      list.flow = list.items.every((item) => isScalar(item) && typeof item.value === 'number');
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

const TEXT: ScalarTag = {
  tag: 'tag:yaml.org,2002:str',
  default: true,
  identify: (value) => typeof value === 'string',
  resolve: (text) => text,
  stringify: ({ value }) => {
    const text = value as string;
    return PLAIN.test(text) && !RESERVED.test(text) ? text : quoted(text);
  },
};

const NUMBER: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  // Reads nothing; but without a test the schema's own number tags would be preferred for writing.
  test: /(?!)/,
  identify: (value) => typeof value === 'number',
  resolve: (text) => Number(text),
  stringify: ({ value }) => numberText(value as number),
};

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
