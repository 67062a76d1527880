/** Formats of weights in eight bits and fewer: what one has to say of itself, and what several share. */
import { isJsonNumber, type JsonObject, type JsonValue } from '../../formats/strict-json';
import { derivedTensor } from '../row-map';
import type { Derived, ReadTensor, TensorRef } from '../tensor-view';

/** A checkpoint as the formats look at it. */
export interface QuantizedCheckpoint {
  /** By stored name. */
  tensors: ReadonlyMap<string, TensorRef>;
  /** `quantization_config` of its config.json; `quantization` of MLX. */
  settings: JsonObject;
  /** What bitsandbytes says of its 4-bit weights, by the name of the weight. */
  states: ReadonlyMap<string, FourBitState>;
}

/** Shape and blocks of a weight in four bits: `quant_state` (bitsandbytes, functional.py, QuantState.as_dict). */
export interface FourBitState {
  type: string;
  shape: readonly number[];
  block: number;
  /** Of the magnitudes, which are in eight bits where this is there. */
  nested?: { block: number; offset: number };
}

/** A weight that was found, in place of the stored tensors that it is made of. */
export interface FoundWeight {
  name: string;
  /** As it is named to people. */
  format: string;
  shape: readonly number[];
  /** Stored tensors that its values are computed from, and others that say nothing more. */
  from: readonly TensorRef[];
  beside?: readonly string[];
  /** What its values are computed by: plain numbers. */
  params: Readonly<Record<string, number | readonly number[]>>;
}

/** Reads elements [begin, end) of a weight, row after row. */
type ReadValues = Awaited<ReturnType<Derived['open']>>;

/** A format: one file, and its row in `formats.ts`. */
export interface QuantizedFormat {
  /**
   * The weight that a stored tensor is the main part of. `unscaled`: it is of this format, and no scale fits it. Undefined
   * for what is none of this format.
   */
  find(name: string, ref: TensorRef, checkpoint: QuantizedCheckpoint): FoundWeight | 'unscaled' | undefined;
  open(from: readonly TensorRef[], params: FoundWeight['params'], read: ReadTensor): Promise<ReadValues>;
}

/** A weight that is found as a tensor of F32 whose values are computed when they are read. */
export function foundTensor(id: string, format: QuantizedFormat, found: FoundWeight): TensorRef {
  const { from, params, shape, format: name } = found;
  const tensor = derivedTensor(from[0]!, shape, from, (read) => format.open(from, params, read));
  return { ...tensor, derived: { ...tensor.derived!, quantized: { id, format: name, params } } };
}

/**
 * Reads whole rows and cuts them to the elements asked for.
 * @param rowsOf values of rows [first, end), row after row
 */
export function byRows(
  columns: number,
  rowsOf: (first: number, end: number) => Promise<Float32Array>,
): ReadValues {
  return async (begin, end) => {
    const first = Math.floor(begin / columns);
    const values = await rowsOf(first, Math.ceil(end / columns));
    return values.subarray(begin - first * columns, end - first * columns);
  };
}

/** The number of a config's field; undefined where it is none. */
export function numberIn(settings: JsonObject, field: string): number | undefined {
  const value: JsonValue | undefined = settings.get(field);
  return isJsonNumber(value) ? Number(value.text) : undefined;
}

/** Words of 32 bits of bytes that may lie anywhere. */
export function wordsOf(bytes: Uint8Array<ArrayBuffer>): Uint32Array {
  const { buffer, byteOffset, byteLength } = byteOffsetOf(bytes);
  return new Uint32Array(buffer, byteOffset, byteLength >> 2);
}

function byteOffsetOf(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
}

/** Value number `index` of a stream of `bits` bits each from the start of `words` + `step`·k, the low bits first. */
export function bitsAt(words: Uint32Array, start: number, step: number, bits: number, index: number): number {
  const at = index * bits;
  const [word, shift] = [start + (at >>> 5) * step, at & 31];
  const low = words[word]! >>> shift;
  const over = shift + bits > 32 ? words[word + step]! << (32 - shift) : 0;
  return (low | over) & ((1 << bits) - 1);
}

/** The group of each column where groups of one size follow each other. */
export function evenGroups(columns: number, groups: number): Int32Array {
  const size = Math.ceil(columns / groups);
  return Int32Array.from({ length: columns }, (_, column) => Math.floor(column / size));
}

/** All bytes of a stored tensor. */
export function wholeOf(ref: TensorRef, read: ReadTensor): Promise<Uint8Array<ArrayBuffer>> {
  return read(ref, 0, ref.end - ref.begin);
}
