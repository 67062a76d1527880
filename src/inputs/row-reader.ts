/**
 * Reading tensors that are derived, or seen in another vocabulary: the rows of a tile are fetched from wherever they are stored,
 * in pieces, so that memory does not grow with the vocabulary. Everything here is computed on the host, alike for both
 * engines.
 */
import { exact, exactFloats } from '../backend/exact';
import { isWeightDtype, type WeightDtype, weightBytes } from '../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../formats/half';
import type { ByteSource } from '../sources/byte-source';
import { MEAN_ROW, PIECE_BYTES, type RowPart, SUM_ROW } from './row-map';
import { inputName, loadFactorValues, type ReadTensor, weightDtype } from './stored-tensor';
import type { Derived, LowRank, RowMap, RowSource, RowSums, TensorRef } from './tensor-view';

/** Rows this far apart are read in one piece, with what lies between them. */
const GAP_BYTES = 64 * 1024;
/** Elements looked at together for the mean of all rows. */
const MEAN_ELEMENTS = 1024 * 1024;

/** One stored row and the output row it belongs to. */
interface Want {
  row: number;
  /** Output row, counted from the first one asked for. */
  to: number;
}

/** Derived tensors that stay open: those of the output tensors being computed, fewer where much is stored of them. */
const MOST_OPEN = { tensors: 16, bytes: 64 * 2 ** 20, least: 4 };

/**
 * `stored`, for tensors in other vocabularies and for derived ones too. The row means it computes are cached for as long
 * as it lives, what derived tensors were opened with for the last few of them.
 */
export function readingRows(stored: ReadTensor): ReadTensor {
  const opened = new Map<Derived, ReturnType<Derived['open']>>();
  const means = new WeakMap<TensorRef, Promise<Float32Array>>();
  const factors = new WeakMap<LowRank, Promise<Factors>>();

  const factorsOf = (update: LowRank) => {
    const known = factors.get(update) ?? loadFactors(update, read);
    factors.set(update, known);
    return known;
  };
  const meanOf = (ref: TensorRef, map: RowMap) => {
    const known = means.get(ref) ?? meanRow(ref, map, (from, to) => rows(ref, map, from, to));
    means.set(ref, known);
    return known;
  };

  /** Output rows [from, to) but for those that are the mean of the others, which stay zero. */
  const rows = async (ref: TensorRef, map: RowMap, from: number, to: number) => {
    const out = new RowBuffer(ref, to - from);
    const wanted = map.sources.map((): Want[] => []);
    const summed = map.sources.map((): (Want & { weight: number })[] => []);
    for (let i = from; i < to; i++) {
      const source = map.source[i]!;
      if (source >= 0) wanted[source]!.push({ row: map.row[i]!, to: i - from });
      if (source !== SUM_ROW) continue;
      for (const { source: of, row, weight } of partsOf(map.sums!, i)) {
        summed[of]!.push({ row, to: i - from, weight });
      }
    }
    const sums = new Map<number, Float64Array>();
    for (const [i, source] of map.sources.entries()) {
      const update = source.lowRank && (await factorsOf(source.lowRank));
      await eachRow(source, wanted[i]!, read, (bytes, want) => {
        if (!update && source.tensor.dtype === ref.dtype) out.copy(bytes, want.to);
        else out.write(rowValues(bytes, source, want.row, update), want.to);
      });
      let last: { row: number; values: Float32Array } = { row: -1, values: new Float32Array() };
      await eachRow(source, summed[i]!, read, (bytes, { row, to: at, weight }) => {
        if (last.row !== row) last = { row, values: rowValues(bytes, source, row, update) };
        const { values } = last;
        const sum = sums.get(at) ?? new Float64Array(values.length);
        for (let c = 0; c < values.length; c++) sum[c] = sum[c]! + values[c]! * weight;
        sums.set(at, sum);
      });
    }
    for (const [at, sum] of sums) {
      bringTo(sum, map.sums!.norm?.[from + at] ?? 0);
      out.write(exactFloats(sum), at);
    }
    return out;
  };

  const mapped = async (ref: TensorRef, map: RowMap, begin: number, end: number) => {
    const rowBytes = ref.end / map.source.length;
    const from = Math.floor(begin / rowBytes);
    const to = Math.ceil(end / rowBytes);
    const out = await rows(ref, map, from, to);
    for (let i = from; i < to; i++) {
      if (map.source[i] === MEAN_ROW) out.write(await meanOf(ref, map), i - from);
    }
    return out.bytes.slice(begin - from * rowBytes, end - from * rowBytes);
  };

  const derived = async (from: Derived, begin: number, end: number) => {
    const elements = opened.get(from) ?? from.open(read);
    opened.delete(from);
    opened.set(from, elements);
    const storedBytes = () => [...opened.keys()].reduce((sum, one) => sum + bytesOf(one), 0);
    const { tensors, bytes, least } = MOST_OPEN;
    while (opened.size > tensors || (opened.size > least && storedBytes() > bytes))
      opened.delete(opened.keys().next().value!);
    elements.catch(() => opened.delete(from));
    const first = Math.floor(begin / 4);
    const { buffer, byteOffset, byteLength } = await (await elements)(first, Math.ceil(end / 4));
    // a quantized weight is decoded anew each time
    const isOwn = from.quantized !== undefined || byteLength === buffer.byteLength;
    if (isOwn && byteOffset === 0 && byteLength === end - begin)
      return new Uint8Array(buffer as ArrayBuffer, 0, byteLength);
    return new Uint8Array(buffer, byteOffset, byteLength).slice(begin - 4 * first, end - 4 * first);
  };

  const read: ReadTensor = async (ref, begin, end) => {
    if (ref.derived) return derived(ref.derived, begin, end);
    if (!ref.rows) return stored(ref, begin, end);
    if (ref.rows.axis === 'rows') return mapped(ref, ref.rows, begin, end);
    return (await columnsOf(ref, ref.rows, read)).slice(begin, end);
  };
  read.now = (ref, ...range) => !ref.derived && !ref.rows && stored.now?.(ref, ...range) === true;
  return read;
}

/** Stored bytes that a derived tensor is computed from. */
function bytesOf({ from }: Derived): number {
  return from.reduce((sum, { begin, end }) => sum + end - begin, 0);
}

class RowBuffer {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly #rowBytes: number;
  readonly #dtype: WeightDtype;

  constructor(ref: TensorRef, rows: number) {
    this.#rowBytes = ref.end / ref.rows!.source.length;
    this.#dtype = ref.dtype as WeightDtype;
    this.bytes = new Uint8Array(rows * this.#rowBytes);
  }

  /** A row in the dtype of the tensor. */
  copy(row: Uint8Array, to: number): void {
    this.bytes.set(row, to * this.#rowBytes);
  }

  /** A row in f32, rounded to the dtype of the tensor. */
  write(values: Float32Array, to: number): void {
    const at = to * this.#rowBytes;
    encodeFromF32(values, this.#dtype, this.bytes.subarray(at, at + this.#rowBytes));
  }
}

/** Visits stored rows, each as its bytes, in the order in which they are stored. */
async function eachRow<W extends Want>(
  { tensor }: RowSource,
  wanted: W[],
  read: ReadTensor,
  visit: (bytes: Uint8Array<ArrayBuffer>, want: W) => void,
): Promise<void> {
  const rowBytes = (tensor.end - tensor.begin) / tensor.shape[0]!;
  const sorted = wanted.sort((a, b) => a.row - b.row);
  for (let at = 0; at < sorted.length; ) {
    const first = sorted[at]!.row;
    let last = at;
    while (
      last + 1 < sorted.length &&
      (sorted[last + 1]!.row - sorted[last]!.row - 1) * rowBytes <= GAP_BYTES &&
      (sorted[last + 1]!.row + 1 - first) * rowBytes <= PIECE_BYTES
    ) {
      last++;
    }
    const piece = await read(tensor, first * rowBytes, (sorted[last]!.row + 1) * rowBytes);
    for (; at <= last; at++) {
      const begin = (sorted[at]!.row - first) * rowBytes;
      visit(piece.subarray(begin, begin + rowBytes), sorted[at]!);
    }
  }
}

/** The parts of an output row. */
function partsOf({ begin, source, row, weight }: RowSums, output: number): RowPart[] {
  const [from, to] = [begin[output]!, begin[output + 1]!];
  return Array.from({ length: to - from }, (_, i) => ({
    source: source[from + i]!,
    row: row[from + i]!,
    weight: weight[from + i]!,
  }));
}

/** Scales a row to a norm; one of zeros stays. */
function bringTo(row: Float64Array, norm: number): void {
  const own = norm > 0 ? Math.sqrt(row.reduce((sum, value) => sum + value * value, 0)) : 0;
  if (own === 0) return;
  for (let c = 0; c < row.length; c++) row[c] = row[c]! * (norm / own);
}

interface Factors {
  left: Float32Array;
  right: Float32Array;
}

async function loadFactors(update: LowRank, read: ReadTensor): Promise<Factors> {
  const { left, right } = await loadFactorValues(update, read);
  return { left: exactFloats(left), right: exactFloats(right) };
}

/** A stored row as f32, with its model's update: the arithmetic of the `low-rank` kernel. */
function rowValues(
  bytes: Uint8Array<ArrayBuffer>,
  { tensor, lowRank }: RowSource,
  row: number,
  factors: Factors | undefined,
): Float32Array {
  const dtype = weightDtype(tensor);
  const values = new Float32Array(bytes.byteLength / weightBytes(dtype));
  decodeToF32(bytes, dtype, values);
  if (!lowRank || !factors) return values;
  const { rank } = lowRank;
  const scale = exact(lowRank.scale);
  for (let c = 0; c < values.length; c++) {
    let sum = 0;
    for (let k = 0; k < rank; k++) {
      const product = exact(factors.left[row * rank + k]! * factors.right[k * values.length + c]!);
      sum = exact(sum + product);
    }
    values[c] = exact(exact(values[c]!) + exact(sum * scale));
  }
  return values;
}

/** The mean of every row that belongs to a token, summed in f64 in the order of the rows. */
async function meanRow(
  ref: TensorRef,
  map: RowMap,
  rows: (from: number, to: number) => Promise<RowBuffer>,
): Promise<Float32Array> {
  const width = ref.end / 4 / map.source.length;
  const sum = new Float64Array(width);
  const step = Math.max(1, Math.floor(MEAN_ELEMENTS / width));
  let count = 0;
  for (let from = 0; from < map.source.length; from += step) {
    const to = Math.min(from + step, map.source.length);
    const { bytes } = await rows(from, to);
    const values = new Float32Array(bytes.buffer);
    for (let i = from; i < to; i++) {
      if (map.source[i] === MEAN_ROW) continue;
      count++;
      for (let c = 0; c < width; c++) sum[c] = sum[c]! + values[(i - from) * width + c]!;
    }
  }
  return exactFloats(count === 0 ? sum : sum.map((s) => s / count));
}

/** A factor [rank, tokens] with its columns in the order of the output vocabulary, all of it, in f32. */
async function columnsOf(
  ref: TensorRef,
  { source, row, sources }: RowMap,
  read: ReadTensor,
): Promise<Uint8Array<ArrayBuffer>> {
  const { tensor } = sources[0]!;
  if (!isWeightDtype(tensor.dtype)) throw new Error(`${tensor.key}: ${tensor.dtype} is no weight`);
  const [rank, tokens] = tensor.shape as [number, number];
  const stored = new Float32Array(rank * tokens);
  decodeToF32(await read(tensor, 0, tensor.end - tensor.begin), tensor.dtype, stored);
  const count = source.length;
  const out = new Float32Array(ref.end / 4);
  const named = source.reduce((n, s) => (s === MEAN_ROW ? n : n + 1), 0);
  for (let k = 0; k < rank; k++) {
    let sum = 0;
    for (let i = 0; i < count; i++) {
      if (source[i] !== 0) continue;
      const value = stored[k * tokens + row[i]!]!;
      out[k * count + i] = value;
      sum += value;
    }
    const mean = named === 0 ? 0 : sum / named;
    for (let i = 0; i < count; i++) if (source[i] === MEAN_ROW) out[k * count + i] = mean;
  }
  return new Uint8Array(out.buffer);
}

/** Reads tensors of files, their rows wherever they are. @param sourceOf a file by {@link inputName} */
export function readingFiles(
  sourceOf: (name: string) => Pick<ByteSource, 'read' | 'readNow'>,
  signal?: AbortSignal,
): ReadTensor {
  const of = ({ folder, file }: TensorRef) => sourceOf(inputName(folder, file));
  const stored: ReadTensor = (ref, begin, end) => of(ref).read(ref.begin + begin, ref.begin + end, signal);
  stored.now = (ref, begin, end, into) =>
    of(ref).readNow?.(ref.begin + begin, ref.begin + end, into) === true;
  return readingRows(stored);
}
