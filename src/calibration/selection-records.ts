/** Masks of one contributor's task vectors, layer by layer, as records in the browser's storage. */

import type { Backend } from '../backend/backend';
import { maskRowWords } from '../backend/kernels/select';
import type { ReadTensor } from '../inputs/stored-tensor';
import { densityOf } from '../merge/tensor/delta-selectors';
import type { PreparedSelection } from '../merge/tensor/prepared';
import type { Workspace } from '../merge/tensor/workspace';
import type { LinearSite } from '../models/claim';
import type { RecordFolder, RecordHeader, StoredRecord } from '../store/masks';
import type { Gram } from './gram';
import type { LinearTensor } from './linear-tensors';
import { loadTaskVectors, withContributors } from './task-vectors';
import { factorNotes, type TrimSettings, trim, trimSettings } from './trimmed-change';

/** A mask, and the compensated values where it is set. Shapes are those of the stored tensor. */
export interface SelectionHeader extends RecordHeader, TrimSettings {
  shape: readonly number[];
  kept: number;
}

/** Tensors of one contributor that are to be trimmed: not all of it stays, not nothing, and it changes them at all. */
export function toTrim(layers: readonly (readonly LinearTensor[])[], model: string): LinearTensor[][] {
  return layers.map((tensors) =>
    tensors.flatMap((tensor) => {
      const at = tensor.plan.models.findIndex((m) => m.id === model);
      const found = tensor.plan.models[at];
      if (!found) return [];
      const density = densityOf(found.parameters);
      const { view } = found;
      const idle = view.onBase && !view.lowRank && !view.addend;
      return density > 0 && density < 1 && !idle ? [withContributors(tensor, [at])] : [];
    }),
  );
}

/** Storage key of the selection of a tensor. */
export function selectionName({ plan }: LinearTensor): string {
  const { density, score, scope, compensation } = trimSettings(plan.parameters, plan.models[0]!.parameters);
  return [plan.name, density, score, scope, compensation].join('|');
}

export interface SolveContext {
  engine: Backend;
  work: Workspace;
  read: ReadTensor;
  folder: RecordFolder;
}

/** Trims a tensor (of one contributor, {@link toTrim}) and stores its mask and values. */
export async function chooseTensor(
  tensor: LinearTensor,
  grams: ReadonlyMap<LinearSite, Gram>,
  { engine, work, read, folder }: SolveContext,
): Promise<{ record: StoredRecord<SelectionHeader>; notes: string[] }> {
  const { plan, outputs: rows, inputs: cols, storage } = tensor;
  const gram = grams.get(tensor.site)!;
  const settings = trimSettings(plan.parameters, plan.models[0]!.parameters);
  const vectors = await loadTaskVectors(tensor, work, read);
  try {
    const trimmed = await trim(engine, vectors.taus[0]!, rows, cols, gram, settings);
    const elements = rows * cols;
    const [maskBytes, tauBytes] = await engine.read([
      { buffer: trimmed.mask, byteLength: trimmed.maskBytes },
      ...(trimmed.tau ? [{ buffer: trimmed.tau, byteLength: elements * 4 }] : []),
    ]);
    engine.free(trimmed.mask);
    if (trimmed.tau) engine.free(trimmed.tau);
    const isTransposed = storage === 'in_out';
    const mask = new Uint32Array(maskBytes!.buffer);
    const words = isTransposed ? transposeBits(mask, rows, cols) : mask;
    const values = tauBytes && new Float32Array(tauBytes.buffer);
    const [storedRows, storedCols] = isTransposed ? [cols, rows] : [rows, cols];
    const packed =
      values &&
      pack(isTransposed ? transposeValues(values, rows, cols) : values, words, storedRows, storedCols);
    const record = await folder.write<SelectionHeader>(
      {
        name: selectionName(tensor),
        shape: plan.shape,
        ...settings,
        kept: countBits(words),
      },
      [new Uint8Array(words.buffer), ...(packed ? [new Uint8Array(packed.buffer)] : [])],
    );
    return { record, notes: factorNotes(plan.name, { gram, results: [trimmed.factoring] }) };
  } finally {
    vectors.close();
  }
}

/** The record as a merge reads it. The mask of the tensor at work stays in memory. */
export function selectionOf(record: StoredRecord<SelectionHeader>): PreparedSelection {
  const { header } = record;
  const [, cols] = header.shape as [number, number];
  let loaded: Promise<Uint32Array> | undefined;
  const whole = () => {
    loaded ??= record.read(0, 0, header.sections[0]!).then((bytes) => new Uint32Array(bytes.buffer));
    return loaded;
  };
  const elements = header.shape.reduce((a, b) => a * b, 1);
  const bits = async (begin: number, end: number) => {
    const found = flatBits(await whole(), cols, begin, end);
    // a merge goes from the first element to the last
    if (end === elements) loaded = undefined;
    return found;
  };
  if (header.compensation === 'off') return { kind: 'mask', kept: header.kept, mask: bits };
  let before = { element: 0, kept: 0 };
  return {
    kind: 'values',
    kept: header.kept,
    async values(begin, end) {
      if (begin !== before.element) {
        before = {
          element: begin,
          kept: begin === 0 ? 0 : countBits(flatBits(await whole(), cols, 0, begin)),
        };
      }
      const mask = await bits(begin, end);
      const count = countBits(mask);
      const bytes = await record.read(1, before.kept * 4, (before.kept + count) * 4);
      before = { element: end, kept: before.kept + count };
      return unpack(mask, new Float32Array(bytes.buffer), end - begin);
    },
  };
}

/** Transpose on the host, [rows, cols] → [cols, rows]. */
export function transposeValues(values: Float32Array, rows: number, cols: number): Float32Array<ArrayBuffer> {
  const out = new Float32Array(values.length);
  for (let r = 0; r < rows; r++) for (let c = 0; c < cols; c++) out[c * rows + r] = values[r * cols + c]!;
  return out;
}

// Masks of one bit per entry on the host: row after row, least significant bit first, rows filled up to 32 bits.

/** Number of bits set. */
export function countBits(words: Uint32Array): number {
  let count = 0;
  for (let w of words) {
    w -= (w >>> 1) & 0x55555555;
    w = (w & 0x33333333) + ((w >>> 2) & 0x33333333);
    count += Math.imul((w + (w >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }
  return count;
}

/** The bits of the flat indices [begin, end) of a mask [rows, cols], from the lowest bit of the first word on. */
export function flatBits(
  words: Uint32Array,
  cols: number,
  begin: number,
  end: number,
): Uint32Array<ArrayBuffer> {
  const out = new Uint32Array(Math.ceil((end - begin) / 32));
  if (cols % 32 === 0 && begin % 32 === 0) {
    out.set(words.subarray(begin / 32, begin / 32 + out.length));
    return out;
  }
  const perRow = maskRowWords(cols);
  for (let e = begin; e < end; e++) {
    const [row, col] = [Math.floor(e / cols), e % cols];
    const bit = (words[row * perRow + (col >>> 5)]! >>> (col & 31)) & 1;
    out[(e - begin) >>> 5]! |= bit << ((e - begin) & 31);
  }
  return out;
}

/** The mask [cols, rows] of the transposed matrix. */
export function transposeBits(words: Uint32Array, rows: number, cols: number): Uint32Array<ArrayBuffer> {
  const [from, to] = [maskRowWords(cols), maskRowWords(rows)];
  const out = new Uint32Array(cols * to);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++) {
      const bit = (words[r * from + (c >>> 5)]! >>> (c & 31)) & 1;
      out[c * to + (r >>> 5)]! |= bit << (r & 31);
    }
  }
  return out;
}

/** Values where the mask has a bit, row after row. */
export function pack(
  values: Float32Array,
  words: Uint32Array,
  rows: number,
  cols: number,
): Float32Array<ArrayBuffer> {
  const out = new Float32Array(countBits(words));
  const perRow = maskRowWords(cols);
  let at = 0;
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++) {
      if ((words[r * perRow + (c >>> 5)]! >>> (c & 31)) & 1) out[at++] = values[r * cols + c]!;
    }
  }
  return out;
}

/** Values put back where a flat mask has a bit, zero elsewhere. */
export function unpack(bits: Uint32Array, packed: Float32Array, elements: number): Float32Array<ArrayBuffer> {
  const out = new Float32Array(elements);
  let at = 0;
  for (let e = 0; e < elements; e++) if ((bits[e >>> 5]! >>> (e & 31)) & 1) out[e] = packed[at++]!;
  return out;
}
