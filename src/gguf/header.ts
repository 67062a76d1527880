/** The header of a GGUF file, version 3 (ggml docs/gguf.md): metadata, and where each tensor lies. */
import { BLOCK_TYPES, type BlockType } from './block-types';

/** A metadata value; arrays hold one type. */
export type GgufValue =
  | { type: 'u32' | 'i32' | 'f32'; value: number }
  | { type: 'bool'; value: boolean }
  | { type: 'text'; value: string }
  | { type: 'array'; of: 'i32' | 'f32'; values: readonly number[] }
  | { type: 'array'; of: 'bool'; values: readonly boolean[] }
  | { type: 'array'; of: 'text'; values: readonly string[] };

export type GgufMetadata = ReadonlyMap<string, GgufValue>;

interface TensorEntry {
  name: string;
  /** Outermost first, as safetensors has it; GGUF writes it reversed. */
  shape: readonly number[];
  type: BlockType;
  /** Bytes of its blocks, without what fills them up to {@link ALIGNMENT}. */
  byteLength: number;
}

/** Every tensor begins at a multiple of this. */
const ALIGNMENT = 32;

const VERSION = 3;
const VALUE_TYPES = { u32: 4, i32: 5, f32: 6, bool: 7, text: 8, array: 9 } as const;

export function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

/** Returns the bytes ahead of the first tensor: magic, counts, metadata, tensor entries, filled up. */
export function ggufHeader(metadata: GgufMetadata, tensors: readonly TensorEntry[]): Uint8Array<ArrayBuffer> {
  const out = growingBytes();
  out.raw(new TextEncoder().encode('GGUF'));
  out.u32(VERSION);
  out.u64(tensors.length);
  out.u64(metadata.size);
  for (const [key, value] of metadata) {
    out.text(key);
    out.u32(VALUE_TYPES[value.type]);
    writeValue(out, value);
  }
  let offset = 0;
  for (const { name, shape, type, byteLength } of tensors) {
    out.text(name);
    out.u32(shape.length);
    for (const extent of [...shape].reverse()) out.u64(extent);
    out.u32(BLOCK_TYPES[type].id);
    out.u64(offset);
    offset += aligned(byteLength);
  }
  return out.finish();
}

function writeValue(out: GrowingBytes, value: GgufValue): void {
  if (value.type !== 'array') {
    scalar(out, value.type, value.value);
    return;
  }
  out.u32(VALUE_TYPES[value.of]);
  out.u64(value.values.length);
  for (const item of value.values) scalar(out, value.of, item);
}

function scalar(out: GrowingBytes, type: 'u32' | 'i32' | 'f32' | 'bool' | 'text', value: unknown): void {
  if (type === 'text') out.text(value as string);
  else if (type === 'bool') out.raw(Uint8Array.of(value ? 1 : 0));
  else if (type === 'f32') out.f32(value as number);
  else out.u32(value as number);
}

type GrowingBytes = ReturnType<typeof growingBytes>;

/** Little-endian values one after the other. */
function growingBytes() {
  let bytes = new Uint8Array(65_536);
  let view = new DataView(bytes.buffer);
  let at = 0;
  const room = (count: number) => {
    if (at + count > bytes.length) {
      const grown = new Uint8Array(Math.max(2 * bytes.length, at + count));
      grown.set(bytes);
      bytes = grown;
      view = new DataView(bytes.buffer);
    }
    at += count;
    return at - count;
  };
  const encoder = new TextEncoder();
  const raw = (piece: Uint8Array) => {
    const begin = room(piece.length);
    bytes.set(piece, begin);
  };
  const u64 = (value: number) => {
    const begin = room(8);
    view.setBigUint64(begin, BigInt(value), true);
  };
  return {
    raw,
    u64,
    u32(value: number) {
      const begin = room(4);
      view.setUint32(begin, value, true);
    },
    f32(value: number) {
      const begin = room(4);
      view.setFloat32(begin, value, true);
    },
    text(value: string) {
      const encoded = encoder.encode(value);
      u64(encoded.length);
      raw(encoded);
    },
    finish: () => bytes.slice(0, aligned(at)),
  };
}
