/**
 * Reading the header of a GGUF file, versions 2 and 3 (ggml docs/gguf.md): metadata, and where each tensor lies. What it says is
 * believed within bounds: a header of a few bytes costs no more than it is long.
 */
import { AmalgamError, type ErrorCode } from '../errors';
import { displayName } from '../formats/names';
import { counted } from '../formats/quantity';
import type { ByteSource } from '../sources/byte-source';
import { READ_TYPES, UNREAD_TYPES } from './block-types';

/** Of a tensor in a file; its bytes are `[begin, end)` counted from the start of the file. */
export interface StoredBlocks {
  name: string;
  /** ggml's number of it, one of `READ_TYPES`. */
  type: number;
  /** Outermost first, as safetensors has it. */
  shape: readonly number[];
  begin: number;
  end: number;
}

export type MetadataValue = number | boolean | string | readonly (number | boolean | string)[];

export interface GgufHeader {
  metadata: ReadonlyMap<string, MetadataValue>;
  /** In the order of the header. */
  tensors: readonly StoredBlocks[];
}

export const GGUF_MAGIC = 0x46554747;

/** Longest header: a vocabulary of 262 144 tokens with its merges takes 12 MB. */
const MAX_HEADER_BYTES = 96 * 2 ** 20;
const FIRST_READ = 2 ** 18;
const GROWTH = 4;
const MAX_KEYS = 65_536;
const MAX_TENSORS = 250_000;
const MAX_DIMENSIONS = 4;
const MAX_NAME = 65_535;
/** Entries of all lists together. */
const MAX_ENTRIES = 2 ** 23;

/** The bytes at hand end ahead of what is read next. */
class MoreBytes extends Error {}

/** @throws AmalgamError `HeaderInvalid`, `HeaderTooSmall`, `HeaderTooLarge`, `DuplicateKey`, `InvalidOffset`, `GgufUnsupported` */
export async function readGgufHeader(
  source: ByteSource,
  fileName: string,
  signal?: AbortSignal,
): Promise<GgufHeader> {
  let bytes = new Uint8Array(0);
  for (let wanted = FIRST_READ; ; wanted *= GROWTH) {
    const end = Math.min(wanted, source.byteLength, MAX_HEADER_BYTES);
    const grown = new Uint8Array(end);
    grown.set(bytes);
    grown.set(await source.read(bytes.length, end, signal), bytes.length);
    bytes = grown;
    try {
      return parseHeader(bytes, source.byteLength, fileName);
    } catch (thrown) {
      if (!(thrown instanceof MoreBytes)) throw thrown;
      if (end === source.byteLength) throw invalid(fileName, 'ends within its header', 'HeaderTooSmall');
      if (end === MAX_HEADER_BYTES)
        throw invalid(fileName, `has a header of more than ${MAX_HEADER_BYTES} bytes`, 'HeaderTooLarge');
    }
  }
}

function parseHeader(bytes: Uint8Array, byteLength: number, fileName: string): GgufHeader {
  const refuse = (what: string, code?: ErrorCode) => invalid(fileName, what, code);
  const cursor = openCursor(bytes, refuse);
  if (cursor.u32() !== GGUF_MAGIC) throw refuse('does not begin as a GGUF file does');
  const version = cursor.u32();
  if (version !== 2 && version !== 3) {
    const isTurned = version > 0xffff;
    throw refuse(
      isTurned ? 'has its numbers in the order of big-endian machines' : `is of version ${version}`,
    );
  }
  const tensorCount = cursor.count(MAX_TENSORS, 'tensor');
  const keys = cursor.count(MAX_KEYS, 'key');
  const metadata = new Map<string, MetadataValue>();
  for (let i = 0; i < keys; i++) {
    const key = cursor.text(MAX_NAME);
    if (metadata.has(key)) throw refuse(`has the key “${displayName(key)}” twice`, 'DuplicateKey');
    metadata.set(key, cursor.value(cursor.u32(), key));
  }
  const alignment = metadata.get('general.alignment') ?? 32;
  if (typeof alignment !== 'number' || alignment < 8 || alignment > 65_536 || alignment % 8 !== 0) {
    throw refuse('has an alignment that no file has');
  }
  const entries = Array.from({ length: tensorCount }, () => {
    const name = cursor.text(MAX_NAME);
    const dimensions = cursor.u32();
    if (dimensions > MAX_DIMENSIONS)
      throw refuse(`has ${counted(dimensions, 'dimension')} in ${displayName(name)}`);
    const shape = Array.from({ length: dimensions }, cursor.size).reverse();
    return { name, shape, type: cursor.u32(), offset: cursor.size() };
  });
  const begin = Math.ceil(cursor.at() / alignment) * alignment;
  const tensors = entries.map(({ offset, ...entry }): StoredBlocks => {
    if (offset % alignment !== 0)
      throw refuse(`has ${displayName(entry.name)} at an offset that is not aligned`, 'InvalidOffset');
    const stored = { ...entry, begin: begin + offset, end: begin + offset + lengthOf(entry, fileName) };
    if (stored.end > byteLength) {
      throw new AmalgamError(
        'FileSizeMismatch',
        `${displayName(fileName)} has ${counted(byteLength, 'byte')}, and its tensor ${displayName(entry.name)} would end at ${stored.end}.`,
        'The copy is incomplete. Get the file again.',
      );
    }
    return stored;
  });
  if (new Set(tensors.map(({ name }) => name)).size < tensors.length)
    throw refuse('has two tensors of one name', 'DuplicateKey');
  const inOrder = tensors.toSorted((a, b) => a.begin - b.begin);
  const overlap = inOrder.find((tensor, i) => i > 0 && tensor.begin < inOrder[i - 1]!.end);
  if (overlap) throw refuse(`has ${displayName(overlap.name)} over another tensor`, 'InvalidOffset');
  return { metadata, tensors };
}

function lengthOf(
  { name, shape, type }: Pick<StoredBlocks, 'name' | 'shape' | 'type'>,
  fileName: string,
): number {
  const blocks = READ_TYPES.get(type);
  if (!blocks) {
    throw new AmalgamError(
      'GgufUnsupported',
      `${displayName(fileName)} stores ${displayName(name)} as ${UNREAD_TYPES[type] ?? `type ${type}`}, which is not read.`,
      `Take a file of the model in another type, such as Q8_0, Q4_K_M or BF16.`,
    );
  }
  const elements = shape.reduce((product, extent) => product * extent, 1);
  if (elements === 0 || !Number.isSafeInteger(elements) || (shape.at(-1) ?? 1) % blocks.elements !== 0) {
    throw invalid(
      fileName,
      `has ${displayName(name)} in a shape that ${blocks.name} cannot have`,
      'ShapeMismatch',
    );
  }
  return (elements / blocks.elements) * blocks.bytes;
}

/** Little-endian values one after the other; `MoreBytes` where they end. */
function openCursor(bytes: Uint8Array, refuse: (what: string) => AmalgamError) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const decoder = new TextDecoder();
  let place = 0;
  let entries = 0;
  const step = (count: number) => {
    if (place + count > bytes.length) throw new MoreBytes();
    place += count;
    return place - count;
  };
  const u32 = () => view.getUint32(step(4), true);
  const size = () => {
    const value = Number(view.getBigUint64(step(8), true));
    if (value > Number.MAX_SAFE_INTEGER) throw refuse('has a length beyond all files');
    return value;
  };
  const text = (most: number) => {
    const length = size();
    if (length > most) throw refuse(`has a text of ${counted(length, 'byte')} in its header`);
    const begin = step(length);
    return decoder.decode(bytes.subarray(begin, begin + length));
  };
  /** By the number of a type; lists aside. */
  const scalars: Readonly<Record<number, () => number | boolean | string>> = {
    0: () => view.getUint8(step(1)),
    1: () => view.getInt8(step(1)),
    2: () => view.getUint16(step(2), true),
    3: () => view.getInt16(step(2), true),
    4: u32,
    5: () => view.getInt32(step(4), true),
    6: () => view.getFloat32(step(4), true),
    7: () => view.getUint8(step(1)) !== 0,
    8: () => text(MAX_HEADER_BYTES),
    10: () => Number(view.getBigUint64(step(8), true)),
    11: () => Number(view.getBigInt64(step(8), true)),
    12: () => view.getFloat64(step(8), true),
  };
  const LIST = 9;
  const scalar = (type: number, key: string) => {
    const read = scalars[type];
    if (!read) throw refuse(`has a value of unknown type ${type} under ${displayName(key)}`);
    return read;
  };
  return {
    ...{ u32, size, text, at: () => place },
    count(most: number, what: string) {
      const count = size();
      if (count > most) throw refuse(`counts ${counted(count, what)}; at most ${most} are read`);
      return count;
    },
    value(type: number, key: string): MetadataValue {
      if (type !== LIST) return scalar(type, key)();
      const read = scalar(u32(), key);
      const count = size();
      entries += count;
      if (entries > MAX_ENTRIES) throw refuse(`lists ${counted(count, 'value')} under ${displayName(key)}`);
      // every value takes a byte at least
      if (place + count > bytes.length) throw new MoreBytes();
      return Array.from({ length: count }, read);
    },
  };
}

function invalid(fileName: string, what: string, code: ErrorCode = 'HeaderInvalid'): AmalgamError {
  return new AmalgamError(
    code,
    `${displayName(fileName)} ${what}.`,
    'The file is damaged, or not what its name says. Get it again.',
  );
}
