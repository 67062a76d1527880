import { AmalgamError } from '../errors';
import { counted } from './quantity';

/**
 * Longest tensor name taken, in UTF-16 units. Real names stay below 200; the shard index reader stops at the same
 * length, so a longer name could be read but never listed.
 */
export const MAX_TENSOR_NAME = 100_000;

/** Longest relative path taken: more than any file system Amalgam writes to accepts for a whole path. */
const MAX_PATH = 1024;
/** Longest path segment: 255 bytes is the limit of ext4, APFS and NTFS. */
const MAX_SEGMENT_BYTES = 255;

/** Names Windows reserves for devices, with or without an extension. */
const DEVICE_NAME = /^(con|prn|aux|nul|conin\$|conout\$|clock\$|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)/i;

/** Characters that carry no ink or reorder what is around them: controls, format characters, separators, unassigned. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * A name from a file as it may be shown to a person: control, zero-width, bidirectional and unpaired surrogate
 * characters become `\u{hex}`, so two names that differ also look different. Long names are cut in the middle.
 *
 * @param longest most UTF-16 units shown
 */
export function displayName(name: string, longest = 200): string {
  const half = Math.floor((longest - 1) / 2);
  const cut = name.length > longest ? `${name.slice(0, half)}…${name.slice(-half)}` : name;
  return cut.replace(INVISIBLE, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
}

/** A tensor name without what torch.compile, FSDP, activation checkpointing and Fabric put into it while a model is trained. */
export function withoutWrappers(name: string): string {
  return name.replace(
    /(^|\.)(?:(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module)\.)+/g,
    '$1',
  );
}

/**
 * Lines of text made safe to print on a terminal: as `displayName`, but whole and with line ends and tabs. Text from a file can
 * then never move the cursor, overwrite a line or set the title.
 */
export function printableText(text: string): string {
  return text.replace(INVISIBLE, (c) =>
    c === '\n' || c === '\t' ? c : `\\u{${c.codePointAt(0)!.toString(16)}}`,
  );
}

/** A value as JSON that may be printed on a terminal: as `JSON.stringify`, but nothing invisible stands for itself. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(INVISIBLE, (c) =>
    c === '\n'
      ? c
      : [...Array(c.length).keys()]
          .map((i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, '0')}`)
          .join(''),
  );
}

/**
 * Output paths in the order in which they get their names: what only describes the model first, then weights, then the
 * index that makes shards a model. A folder cut off anywhere is not taken for a whole one.
 */
export function publishOrder(paths: readonly string[]): string[] {
  const rank = (path: string) => (path.endsWith('.index.json') ? 2 : path.endsWith('.safetensors') ? 1 : 0);
  return [...paths].sort((a, b) => rank(a) - rank(b));
}

/**
 * Checks a tensor name read from or written to a file.
 * @throws AmalgamError `UnsafeName` for NUL, unpaired surrogates, the reserved `__metadata__` and over-long names
 */
export function checkTensorName(name: string, fileName: string): void {
  const fault = tensorNameFault(name);
  if (fault === undefined) return;
  throw new AmalgamError(
    'UnsafeName',
    `${displayName(fileName)}: the tensor name “${displayName(name)}” ${fault}.`,
    'The file was not made by a sound writer. Get it again from its author, or save it again with safetensors.',
  );
}

function tensorNameFault(name: string): string | undefined {
  if (name.length >= MAX_TENSOR_NAME) return `is ${counted(name.length, 'character')} long`;
  if (name.includes('\0')) return 'contains a NUL character';
  if (!name.isWellFormed()) return 'contains half of a surrogate pair';
  if (name === '__metadata__') return 'is reserved for metadata';
  return undefined;
}

/**
 * Checks a path that came from an index, a recipe or a server, and returns it unchanged: relative, forward slashes,
 * no way up, no drive, no scheme, nothing that means something else once percent-decoded or on Windows.
 *
 * @throws AmalgamError `UnsafePath`
 */
export function safeRelativePath(path: string): string {
  const fault = pathFault(path);
  if (fault === undefined) return path;
  throw new AmalgamError(
    'UnsafePath',
    `The file name “${displayName(path)}” ${fault}.`,
    'File names must be plain relative paths such as model-00001-of-00002.safetensors. Nothing was read or written.',
  );
}

function pathFault(path: string): string | undefined {
  if (path === '') return 'is empty';
  if (path.length > MAX_PATH) return `is longer than ${MAX_PATH} characters`;
  if (!path.isWellFormed()) return 'contains half of a surrogate pair';
  if (/\p{Cc}/u.test(path)) return 'contains a control character';
  if (/[<>:"|?*\\]/.test(path)) return 'contains a character that file systems give a meaning to';
  if (/%[0-9a-f]{2}/i.test(path)) return 'contains percent-encoding';
  for (const segment of path.split('/')) {
    if (segment === '') return 'is absolute or has an empty part';
    if (segment === '.' || segment === '..') return 'steps out of its folder';
    if (/[. ]$/.test(segment)) return 'has a part that ends in a dot or a space';
    if (DEVICE_NAME.test(segment)) return 'is a device name on Windows';
    if (new TextEncoder().encode(segment).length > MAX_SEGMENT_BYTES) return 'has an over-long part';
  }
  return undefined;
}

/**
 * A folder name made from any text: ASCII letters, digits, `.`, `_` and `-`, at most 80 characters, never a device
 * name, never empty.
 */
export function outputFolderName(text: string): string {
  const name = text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/([.-])[.-]+/g, '$1')
    .slice(0, 80)
    .replace(/^[._-]+|[._-]+$/g, '');
  if (name === '') return 'merged';
  return DEVICE_NAME.test(name) ? `merged-${name}` : name;
}

/** -1, 0 or 1 by Unicode code points, the order of UTF-8 bytes: what Rust and Python sort strings by. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // Surrogates (astral characters) sort after the rest of the basic plane, which UTF-16 order gets wrong.
    const xRank = (x & 0xf800) === 0xd800 ? 1 : 0;
    const yRank = (y & 0xf800) === 0xd800 ? 1 : 0;
    return xRank !== yRank ? Math.sign(xRank - yRank) : Math.sign(x - y);
  }
  return Math.sign(a.length - b.length);
}

/** The name a person may have meant: within two changes of a letter, or one for names of up to five; else undefined. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const plain = name.toLowerCase();
  const distances = known.map((other) => ({ other, distance: editDistance(plain, other.toLowerCase()) }));
  const nearest = distances.reduce<(typeof distances)[number] | undefined>(
    (best, entry) => (best && best.distance <= entry.distance ? best : entry),
    undefined,
  );
  return nearest && nearest.distance <= (name.length > 5 ? 2 : 1) ? nearest.other : undefined;
}

/** `; did you mean gguf?`: the end of a sentence that there is none of that name. @param mark in front of the names */
export function orMeant(name: string, known: readonly string[], mark = ''): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? '.' : `; did you mean ${displayName(`${mark}${nearest}`)}?`;
}

/** Letters to insert, delete, replace or swap with their neighbor between two words (optimal string alignment). */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swap =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : change;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, change, swap));
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
