/** Masks of one contributor's task vectors, layer by layer, as records in the browser's storage. */

import type { Backend } from '../backend/backend';
import type { ReadTensor } from '../inputs/stored-tensor';
import { densityOf } from '../merge/tensor/delta-selectors';
import type { PreparedSelection } from '../merge/tensor/prepared';
import type { Workspace } from '../merge/tensor/workspace';
import type { LinearSite } from '../models/claim';
import type { RecordFolder, RecordHeader, StoredRecord } from '../store/masks';
import type { FactorResult } from './factor';
import type { Gram } from './gram';
import type { LinearTensor } from './linear-tensors';
import { countBits, flatBits, pack, transposeBits, unpack } from './mask-bits';
import { loadTaskVectors, withContributors } from './task-vectors';
import { factorNotes, type TrimSettings, trim, trimSettings } from './trimmed-change';

/** A mask, and the compensated values where it is set. Shapes are those of the stored tensor. */
export interface SelectionHeader extends RecordHeader, TrimSettings {
  tensor: string;
  shape: readonly number[];
  /** sha256 of the calibration, of the model's files, and of the base's. */
  calibration: string;
  model: string;
  base: string;
  kept: number;
  facts: FactorResult[];
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

interface ChooseContext {
  engine: Backend;
  work: Workspace;
  read: ReadTensor;
  folder: RecordFolder;
  hashes: { calibration: string; model: string; base: string };
}

/** Trims a tensor (of one contributor, {@link toTrim}) and stores its mask and values. */
export async function chooseTensor(
  tensor: LinearTensor,
  grams: ReadonlyMap<LinearSite, Gram>,
  { engine, work, read, folder, hashes }: ChooseContext,
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
        tensor: plan.name,
        shape: plan.shape,
        ...settings,
        ...hashes,
        kept: countBits(words),
        facts: [trimmed.factoring],
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
