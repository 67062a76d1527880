/** Tensors of token rows in another vocabulary: rows of shared tokens as they are, those of new ones as sums of them. */
import type { WeightDtype } from '../../formats/dtype';
import { derivedTensor, mappedTensor, SUM_ROW, ZERO_ROW } from '../../inputs/row-map';
import { type ReadTensor, readF32 } from '../../inputs/stored-tensor';
import type { RowMap, RowSource, TensorRef } from '../../inputs/tensor-view';
import type { TensorPlan } from '../../merge/plan/plan';
import type { TokenTensor, Transplant } from './transplant';

/** Sums that make the rows of new tokens, by their place among them. */
export interface NewRows {
  /** Rows of the model and their factors; none where the row is zero, undefined where it is the mean of the model's. */
  parts: (token: number) => { rows: ArrayLike<number>; weights: ArrayLike<number> } | undefined;
  /** Norm that a row is brought to; 0 leaves it. */
  norm: (token: number) => number;
}

/** The tensor of the output. */
export function transplanted(
  tensor: TokenTensor,
  { output, shared, fresh, model }: Transplant,
  made: NewRows,
): TensorPlan {
  const { own, planned } = tensor;
  const stored = own.tensor.shape[0]!;
  // Gemma 3n may have fewer per-layer rows than tokens; a token beyond them has row 0 (modeling_gemma3n.py)
  const within = (row: number) => (row < stored ? row : 0);
  const source = new Int32Array(output.rows).fill(1);
  const row = new Int32Array(output.rows);
  for (const [id, at] of shared) {
    source[id] = 0;
    row[id] = within(at);
  }
  const all = fresh.map((_, i) => made.parts(i) ?? MEAN);
  const begin = new Int32Array(output.rows + 1);
  for (const [i, { id }] of fresh.entries()) {
    const count = all[i]!.rows.length;
    source[id] = count === 0 ? ZERO_ROW : SUM_ROW;
    begin[id + 1] = count;
  }
  for (let i = 0; i < output.rows; i++) begin[i + 1]! += begin[i]!;
  const count = begin[output.rows]!;
  const sums = {
    begin,
    source: new Uint16Array(count),
    row: new Int32Array(count),
    weight: new Float64Array(count),
    norm: new Float64Array(output.rows),
  };
  for (const [i, { id }] of fresh.entries()) {
    const parts = all[i]!;
    if (parts === MEAN) sums.source[begin[id]!] = 1;
    sums.row.set(Array.from(parts.rows, within), begin[id]!);
    sums.weight.set(parts.weights, begin[id]!);
    sums.norm[id] = made.norm(i);
  }
  const usesMean = source.includes(1) || all.includes(MEAN);
  const mean = { tensor: meanOf(own, [...new Set(model.ids.values())].map(within)) };
  const map: RowMap = {
    axis: 'rows',
    sources: usesMean ? [own, mean] : [own],
    ...{ source, row },
    ...(count > 0 && { sums }),
  };
  // rows that are only moved keep their bytes
  return { ...planned, copy: mappedTensor(own.tensor, map, planned.dtype as WeightDtype) };
}

/** The row that is the mean of the model's. */
const MEAN = { rows: [0], weights: [1] };

/** Rows of a tensor, in the order given, with the model's update on them. */
export function rowsOf(source: RowSource, rows: readonly number[]): TensorRef {
  return mappedTensor(source.tensor, {
    axis: 'rows',
    sources: [source],
    source: new Int32Array(rows.length),
    row: Int32Array.from(rows),
  });
}

/** One row: the mean of these, summed in f64. */
function meanOf(source: RowSource, rows: readonly number[]): TensorRef {
  const sorted = [...rows].sort((a, b) => a - b);
  const shape = [1, ...source.tensor.shape.slice(1)];
  const width = shape.reduce((product, extent) => product * extent, 1);
  const from = rowsOf(source, sorted);
  return derivedTensor(source.tensor, shape, [from], async (read) => {
    const sum = new Float64Array(width);
    await eachBatch(source, sorted, width, read, (values) => {
      for (let i = 0; i < values.length; i++) sum[i % width] = sum[i % width]! + values[i]!;
    });
    const mean = Float32Array.from(sum, (value) => value / sorted.length);
    return async (begin, end) => mean.slice(begin, end);
  });
}

/** Most values of rows that are read at once. */
const BATCH = 1 << 20;

/** Reads rows in f32, some at a time. */
export async function eachBatch(
  source: RowSource,
  rows: readonly number[],
  width: number,
  read: ReadTensor,
  take: (values: Float32Array<ArrayBuffer>, first: number) => unknown,
): Promise<void> {
  const step = Math.max(1, Math.floor(BATCH / width));
  for (let first = 0; first < rows.length; first += step) {
    await take(await readF32(rowsOf(source, rows.slice(first, first + step)), read), first);
  }
}
