/**
 * Reading safetensors headers, by the rules of the Rust crate (`safetensors/src/tensor.rs`) and of the format's
 * README, with two more: duplicate keys and dangerous names are refused.
 */

import { AmalgamError, type ErrorCode } from '../errors';
import { DTYPE_BITS, type Dtype, isDtype } from './dtype';
import { checkTensorName, displayName } from './names';
import { counted } from './quantity';
import {
  endJson,
  type JsonCursor,
  type JsonRules,
  limit,
  openJson,
  peekKind,
  readArray,
  readNumber,
  readObject,
  readString,
  readValue,
  strictInteger,
} from './strict-json';

/** Largest header, in bytes: the limit of the Rust crate, so that every file it takes is taken here. */
export const MAX_HEADER_BYTES = 100_000_000;
/**
 * Most tensors of a file or a model: the largest mixtures of experts have 90 000. Each takes some 10 kB while a merge is
 * planned, so a header made of a million would fill the memory of a tab.
 */
export const MAX_TENSORS = 250_000;
/** Most dimensions of a tensor: what PyTorch can hold. */
const MAX_DIMENSIONS = 64;
/** Longest extent of a tensor without elements: lists are allocated by the extent, and here no bytes back it. */
const MAX_EMPTY_EXTENT = 2 ** 24;
const UINT64_MAX = 2n ** 64n - 1n;

const HEADER_RULES: JsonRules = {
  code: 'HeaderInvalid',
  maxLength: MAX_HEADER_BYTES,
  // Training tools store whole configurations in one metadata string.
  maxString: 16_000_000,
};

/** One tensor of a file; its bytes are `[begin, end)` counted from the start of the file. */
export interface StoredTensor {
  name: string;
  dtype: Dtype;
  shape: number[];
  begin: number;
  end: number;
}

export interface SafetensorsHeader {
  /** By name, in the order of the bytes in the file. */
  tensors: Map<string, StoredTensor>;
  metadata: Map<string, string>;
}

/**
 * Length of the JSON header from the first 8 bytes of a file (u64, little-endian). Other kinds of file that are often
 * met under a safetensors name are recognized by their first bytes: none of them can be a length that fits.
 *
 * @throws AmalgamError `HeaderTooSmall`, `HeaderTooLarge`, `FileSizeMismatch` (the file ends inside its header),
 *   `LfsPointer`, `NotSafetensors`
 */
export function headerLength(first8: Uint8Array, fileLength: number, fileName = 'The file'): number {
  const name = displayName(fileName);
  if (fileLength < 8 || first8.length < 8) {
    throw new AmalgamError(
      'HeaderTooSmall',
      `${name} is ${counted(fileLength, 'byte')} long, too short to be a safetensors file.`,
      'The file was cut off or never written. Get it again.',
    );
  }
  const length = new DataView(first8.buffer, first8.byteOffset, 8).getBigUint64(0, true);
  // Compared before it becomes a number: beyond 2^53 the conversion would round.
  if (length > BigInt(MAX_HEADER_BYTES)) {
    throw (
      otherFormat(first8, name) ??
      new AmalgamError(
        'HeaderTooLarge',
        `${name} claims a header of ${counted(Number(length), 'byte')}; at most ${MAX_HEADER_BYTES} are allowed.`,
        'The file is damaged or is not safetensors. Get it again.',
      )
    );
  }
  if (8n + length > BigInt(fileLength)) {
    throw new AmalgamError(
      'FileSizeMismatch',
      `${name} is ${counted(fileLength, 'byte')} long and ends inside its header of ${counted(Number(length), 'byte')}.`,
      'The file was cut off. Get it again.',
    );
  }
  return Number(length);
}

/** Error naming the format that the first bytes belong to, or undefined. */
function otherFormat(first8: Uint8Array, name: string): AmalgamError | undefined {
  const text = String.fromCharCode(...first8.subarray(0, 8));
  if (text === 'version ') {
    return new AmalgamError(
      'LfsPointer',
      `${name} is not the weight file but a git-lfs pointer to it.`,
      'The repository was cloned without git-lfs. Run “git lfs pull” there, or open the model from the Hub.',
    );
  }
  const found = OTHER_FORMATS.find(([begin]) => begin.test(text));
  if (!found) return undefined;
  const [, what, remedy = CONVERT] = found;
  return new AmalgamError('NotSafetensors', `${name} is ${what}, not a safetensors file.`, remedy);
}

const CONVERT =
  'Amalgam reads safetensors only. Convert the weights with transformers (save_pretrained) or find a copy in safetensors.';

/** What files of other kinds begin with. */
const OTHER_FORMATS: readonly (readonly [begin: RegExp, what: string, remedy?: string])[] = [
  [/^# xet /, 'a pointer to it (Xet)', 'Get the file itself: with git-xet in a clone, or with hf download.'],
  [/^PK/, 'a zip archive (a PyTorch .bin or .pt checkpoint, which holds a pickle)'],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: bytes, not text
  [/^\x80[\x02-\x05]/, 'a Python pickle'],
  [/^GGUF/, 'a GGUF file'],
  [/^\x89HDF/, 'an HDF5 file'],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: bytes, not text
  [/^\x1f\x8b/, 'a gzip file'],
  [
    /^\s*<[!a-z?]/i,
    'a web page, perhaps an error page saved in place of the file',
    'Get the file again; for a gated or private model sign in first.',
  ],
  [/^\s*[{[]/, 'a JSON document'],
  [/^[\x20-\x7e\r\n\t]{8}$/, 'a text file'],
];

/**
 * Parses and checks the JSON header.
 *
 * @param headerBytes the header without the 8 bytes of its length
 * @param fileLength bytes of the whole file; the tensors must fill it exactly
 * @throws AmalgamError `HeaderInvalid`, `DuplicateKey`, `LimitExceeded`, `UnsafeName`, `InvalidOffset` (holes, overlap,
 *   anything but strict integers), `ShapeMismatch`, `FileSizeMismatch` (truncated or trailing bytes)
 */
export function parseSafetensorsHeader(
  headerBytes: Uint8Array,
  fileLength: number,
  fileName: string,
): SafetensorsHeader {
  const cursor = openJson(headerText(headerBytes, fileName), fileName, HEADER_RULES);
  const metadata = new Map<string, string>();
  const found: StoredTensor[] = [];
  if (peekKind(cursor) !== 'object') throw invalid(fileName, 'the header is not an object');
  readObject(cursor, (key) => {
    if (key === '__metadata__') readMetadata(cursor, metadata);
    else if (found.length === MAX_TENSORS) {
      throw limit(fileName, `names more than ${MAX_TENSORS} tensors`);
    } else found.push(readTensor(cursor, key));
  });
  endJson(cursor);

  const dataBegin = 8 + headerBytes.length;
  return { tensors: layOut(found, dataBegin, fileLength, fileName), metadata };
}

function headerText(bytes: Uint8Array, fileName: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw invalid(fileName, 'the header is not valid UTF-8', cause);
  }
}

function readMetadata(cursor: JsonCursor, metadata: Map<string, string>): void {
  const kind = peekKind(cursor);
  if (kind === 'word' && readValue(cursor) === null) return; // the Rust crate takes null for absent
  if (kind !== 'object') throw invalid(cursor.fileName, '__metadata__ is not an object');
  readObject(cursor, (key) => {
    if (peekKind(cursor) !== 'string') {
      throw invalid(
        cursor.fileName,
        `__metadata__ has a value that is not a string, at “${displayName(key)}”`,
      );
    }
    const value = readString(cursor);
    if (!key.isWellFormed() || !value.isWellFormed()) {
      throw invalid(cursor.fileName, `__metadata__ has half of a surrogate pair at “${displayName(key)}”`);
    }
    metadata.set(key, value);
  });
}

/** One entry of the header; `begin` and `end` are still counted from the end of the header. */
function readTensor(cursor: JsonCursor, name: string): StoredTensor {
  const { fileName } = cursor;
  checkTensorName(name, fileName);
  const about = (what: string) => invalid(fileName, `tensor “${displayName(name)}” ${what}`);
  if (peekKind(cursor) !== 'object') throw about('is not described by an object');
  let dtype: string | undefined;
  let shape: number[] | undefined;
  let offsets: number[] | undefined;
  readObject(cursor, (key) => {
    if (key === 'dtype') {
      if (peekKind(cursor) !== 'string') throw about('has a dtype that is not a string');
      dtype = readString(cursor);
    } else if (key === 'shape') {
      shape = readIntegers(cursor, name, 'ShapeMismatch', 'shape', MAX_DIMENSIONS);
    } else if (key === 'data_offsets') {
      offsets = readIntegers(cursor, name, 'InvalidOffset', 'data_offsets', 2);
    } else {
      requireWellFormed(key, about);
      skipField(cursor, about);
    }
  });
  if (dtype === undefined || shape === undefined || offsets === undefined) {
    throw about('lacks its dtype, shape or data_offsets');
  }
  if (!isDtype(dtype)) throw about(`has the unknown dtype “${displayName(dtype)}”`);
  const [begin, end] = offsets;
  if (begin === undefined || end === undefined) throw about('does not have two data_offsets');
  return { name, dtype, shape, begin, end };
}

/** Reads over a field that is not the format's; the Rust crate reads its texts all the same, and refuses odd ones. */
function skipField(cursor: JsonCursor, about: (what: string) => AmalgamError): void {
  const kind = peekKind(cursor);
  if (kind === 'object') {
    readObject(cursor, (key) => {
      requireWellFormed(key, about);
      skipField(cursor, about);
    });
  } else if (kind === 'array') readArray(cursor, () => skipField(cursor, about));
  else if (kind === 'string') requireWellFormed(readString(cursor), about);
  else readValue(cursor);
}

function requireWellFormed(text: string, about: (what: string) => AmalgamError): void {
  if (!text.isWellFormed()) throw about('has a field with half of a surrogate pair');
}

function readIntegers(
  cursor: JsonCursor,
  name: string,
  code: ErrorCode,
  field: string,
  most: number,
): number[] {
  const wrong = (what: string) =>
    new AmalgamError(
      code,
      `${displayName(cursor.fileName)}: tensor “${displayName(name)}” has ${field} ${what}.`,
      'The file is damaged. Get it again.',
    );
  if (peekKind(cursor) !== 'array') throw wrong('that are not a list');
  const integers: number[] = [];
  readArray(cursor, (index) => {
    if (index === most) throw wrong(`of more than ${most} entries`);
    if (peekKind(cursor) !== 'number') throw wrong('that are not integers');
    const text = readNumber(cursor);
    const value = strictInteger(text);
    if (value === undefined)
      throw wrong(`with “${displayName(text, 40)}”, which is not an integer from 0 to 2^53 − 1`);
    integers.push(value);
  });
  return integers;
}

/** Checks that the tensors fill the data part without hole or overlap, and makes their offsets absolute. */
function layOut(
  found: StoredTensor[],
  dataBegin: number,
  fileLength: number,
  fileName: string,
): Map<string, StoredTensor> {
  const file = displayName(fileName);
  found.sort((a, b) => a.begin - b.begin || a.end - b.end);
  const tensors = new Map<string, StoredTensor>();
  let at = 0;
  for (const tensor of found) {
    const said = () => `tensor “${displayName(tensor.name)}”`;
    if (tensor.begin !== at || tensor.end < tensor.begin) {
      const fault =
        tensor.end < tensor.begin
          ? 'ends before it begins'
          : tensor.begin < at
            ? 'overlaps the tensor before it'
            : 'leaves a hole before it';
      throw new AmalgamError(
        'InvalidOffset',
        `${file}: ${said()} (bytes ${tensor.begin} to ${tensor.end}) ${fault}.`,
        'The file is damaged or made to hide data. Get it again.',
      );
    }
    const bytes = tensorBytes(tensor.dtype, tensor.shape);
    if (bytes !== tensor.end - tensor.begin) {
      const need =
        bytes === undefined
          ? 'is not a whole number of bytes that can be counted'
          : `takes ${counted(bytes, 'byte')}`;
      throw new AmalgamError(
        'ShapeMismatch',
        `${file}: ${said()} holds ${tensor.end - tensor.begin} bytes, but ${tensor.dtype} [${tensor.shape}] ${need}.`,
        'The file is damaged. Get it again.',
      );
    }
    if (bytes === 0 && tensor.shape.some((extent) => extent > MAX_EMPTY_EXTENT)) {
      throw limit(fileName, `has the ${said()}, which holds nothing and claims the shape [${tensor.shape}]`);
    }
    at = tensor.end;
    tensors.set(tensor.name, { ...tensor, begin: dataBegin + tensor.begin, end: dataBegin + tensor.end });
  }
  if (dataBegin + at !== fileLength) {
    const more = fileLength - dataBegin - at;
    throw new AmalgamError(
      'FileSizeMismatch',
      `${file} is ${counted(fileLength, 'byte')} long, ${Math.abs(more)} bytes ${more > 0 ? 'more' : 'fewer'} than its header describes.`,
      more > 0
        ? 'Something was appended to it. Download the file again.'
        : 'The file was cut off. Get it again.',
    );
  }
  return tensors;
}

/**
 * Bytes of a tensor: product of the shape × bits / 8. Undefined when the product overflows 64 bits, is not a whole
 * number of bytes, or cannot be counted exactly as a number.
 */
export function tensorBytes(dtype: Dtype, shape: readonly number[]): number | undefined {
  const exact = shape.reduce((product, extent) => product * extent, DTYPE_BITS[dtype]);
  if (exact < Number.MAX_SAFE_INTEGER && exact > 0) return exact % 8 === 0 ? exact / 8 : undefined;
  let bits = BigInt(DTYPE_BITS[dtype]);
  for (const extent of shape) {
    bits *= BigInt(extent);
    if (bits > UINT64_MAX) return undefined;
  }
  const bytes = Number(bits / 8n);
  return bits % 8n === 0n && Number.isSafeInteger(bytes) ? bytes : undefined;
}

function invalid(fileName: string, what: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'HeaderInvalid',
    `${displayName(fileName)}: ${what}.`,
    'The file is damaged or was not made by a sound writer. Get it again.',
    { cause },
  );
}
