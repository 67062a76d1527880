/** Tensors that are computed on the host when they are read: small ones whole, weights row by row. */
import { weightBytes } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import { readF32 } from './factor-values';
import type { PartValues, RowChange } from './kinds/kind';
import { type ReadTensor, weightDtype } from './stored-tensor';
import type { TensorRef } from './tensor-view';

/** Stored tensors by the name of their part. */
export type Parts = Readonly<Record<string, TensorRef>>;

/** A tensor of `shape` whose values follow from the parts; they are read, and it is made, whole. */
export function madeTensor(
  parts: Parts,
  shape: readonly number[],
  make: (values: PartValues) => Float32Array,
): TensorRef {
  const from = Object.values(parts);
  return {
    ...derivedFrom(from[0]!, shape),
    derived: {
      from,
      async open(read) {
        const values = make(await partValues(parts, read));
        return async (begin, end) => values.slice(begin, end);
      },
    },
  };
}

/**
 * `origin` with every row changed for itself. Rows are read in the runs that are asked for, so that memory does not grow
 * with the tensor; what `open` makes of the parts stays while the tensor is at work.
 *
 * @param width elements of a row
 */
export function changedRows(
  origin: TensorRef,
  width: number,
  parts: Parts,
  open: (values: PartValues, eachRow: EachRow) => RowChange | Promise<RowChange>,
): TensorRef {
  return {
    ...derivedFrom(origin, origin.shape),
    derived: {
      from: [origin, ...Object.values(parts)],
      async open(read) {
        const change = await open(await partValues(parts, read), (visit) =>
          eachRow(origin, width, read, visit),
        );
        return async (begin, end) => {
          const first = Math.floor(begin / width);
          const rows = await readRows(origin, width, first, Math.ceil(end / width), read);
          const row = new Float64Array(width);
          for (let at = 0; at < rows.length; at += width) {
            row.set(rows.subarray(at, at + width));
            change(row, first + at / width);
            rows.set(row, at);
          }
          return rows.subarray(begin - first * width, end - first * width);
        };
      },
    },
  };
}

/** Visits every row of the tensor before any is changed: a second reading, for what depends on all of them. */
type EachRow = (visit: (row: Float32Array, index: number) => void) => Promise<void>;

/** Elements of the pieces that are read for {@link EachRow}. */
const PIECE = 1 << 20;

async function eachRow(
  origin: TensorRef,
  width: number,
  read: ReadTensor,
  visit: (row: Float32Array, index: number) => void,
): Promise<void> {
  const rows = origin.shape.reduce((n, extent) => n * extent, 1) / width;
  const step = Math.max(1, Math.floor(PIECE / width));
  for (let first = 0; first < rows; first += step) {
    const values = await readRows(origin, width, first, Math.min(rows, first + step), read);
    for (let at = 0; at < values.length; at += width)
      visit(values.subarray(at, at + width), first + at / width);
  }
}

async function readRows(
  origin: TensorRef,
  width: number,
  from: number,
  to: number,
  read: ReadTensor,
): Promise<Float32Array> {
  const dtype = weightDtype(origin);
  const bytes = weightBytes(dtype);
  const values = new Float32Array((to - from) * width);
  decodeToF32(await read(origin, from * width * bytes, to * width * bytes), dtype, values);
  return values;
}

function derivedFrom(origin: TensorRef, shape: readonly number[]): TensorRef {
  const { folder, file, key } = origin;
  return {
    folder,
    file,
    key,
    dtype: 'F32',
    shape,
    begin: 0,
    end: 4 * shape.reduce((n, extent) => n * extent, 1),
  };
}

async function partValues(parts: Parts, read: ReadTensor): Promise<PartValues> {
  const values = await Promise.all(
    Object.entries(parts).map(async ([name, ref]) => [name, await partOf(ref, read)] as const),
  );
  return Object.fromEntries(values);
}

/** Indices are stored as integers. */
async function partOf(ref: TensorRef, read: ReadTensor): Promise<Float32Array> {
  if (ref.dtype !== 'I32' && ref.dtype !== 'I64') return readF32(ref, read);
  const { buffer } = await read(ref, 0, ref.end - ref.begin);
  return ref.dtype === 'I32'
    ? Float32Array.from(new Int32Array(buffer))
    : Float32Array.from(new BigInt64Array(buffer), Number);
}
