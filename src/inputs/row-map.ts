/**
 * A tensor with one row per token, seen in another vocabulary. Which stored row each output row comes from is known in
 * the plan; the rows themselves are read when a tile needs them.
 */

import { DTYPE_BITS, type WeightDtype } from '../formats/dtype';
import type { Derived, MakeValues, ReadTensor, RowMap, RowSource, RowSums, TensorRef } from './tensor-view';

/** Longest piece of stored rows that is read at once. */
export const PIECE_BYTES = 4 * 1024 * 1024;

/** No token's embedding is known here: zeros. */
export const ZERO_ROW = -1;
/** A row without a token, there to fill up the tensor: the mean of all rows with one. */
export const MEAN_ROW = -2;
/** A sum of others, see {@link RowMap.sums}. */
export const SUM_ROW = -3;

/**
 * The tensor as if it were stored that way.
 *
 * @param rounded dtype that rows are rounded to; without, the stored one where rows are only moved, else F32
 */
export function mappedTensor(origin: TensorRef, map: RowMap, rounded?: WeightDtype): TensorRef {
  const moved =
    map.axis === 'rows' &&
    map.sources.every(({ tensor, lowRank }) => tensor.dtype === origin.dtype && !lowRank) &&
    !map.source.some((source) => source === MEAN_ROW || source === SUM_ROW);
  const dtype = rounded ?? (moved ? origin.dtype : 'F32');
  const rows = map.source.length;
  const shape = map.axis === 'rows' ? [rows, ...origin.shape.slice(1)] : [...origin.shape.slice(0, -1), rows];
  const elements = shape.reduce((product, extent) => product * extent, 1);
  return { ...origin, dtype, shape, begin: 0, end: (elements * DTYPE_BITS[dtype]) / 8, rows: map };
}

/** A tensor of `shape` whose values are computed from others when they are read, in F32; its place is the origin's. */
export function derivedTensor(
  { folder, file, key }: Pick<TensorRef, 'folder' | 'file' | 'key'>,
  shape: readonly number[],
  from: readonly TensorRef[],
  open: Derived['open'],
): TensorRef {
  const end = 4 * shape.reduce((n, extent) => n * extent, 1);
  return { folder, file, key, dtype: 'F32', shape, begin: 0, end, derived: { from, open } };
}

/** The same of plain data, so that a thread can open it too: `id` says by what (src/worker/all-kernels.ts). */
export function dataTensor<Params extends object>(
  place: Pick<TensorRef, 'folder' | 'file' | 'key'>,
  shape: readonly number[],
  from: readonly TensorRef[],
  { id, params }: { id: string; params: Params },
  make: MakeValues<Params>,
): TensorRef {
  const elements = shape.reduce((n, extent) => n * extent, 1);
  const tensor = derivedTensor(
    place,
    shape,
    from,
    openMade(elements, (read) => make(from, params, read)),
  );
  return { ...tensor, derived: { ...tensor.derived!, made: { id, params, elements } } };
}

/** Opens values that are made all at once. Who reads all of them gets the array itself: they are made again for the next one. */
export function openMade(
  elements: number,
  make: (read: ReadTensor) => Promise<Float32Array>,
): Derived['open'] {
  return async (read) => {
    let held: Promise<Float32Array> | undefined = make(read);
    await held;
    return async (begin, end) => {
      const values = held ?? make(read);
      const isAll = begin === 0 && end === elements;
      held = isAll ? undefined : values;
      return isAll ? values : (await values).slice(begin, end);
    };
  };
}

/** The stored tensors that reading one takes. */
export function tensorsToRead(ref: TensorRef): TensorRef[] {
  if (ref.derived) return ref.derived.from.flatMap(tensorsToRead);
  if (!ref.rows) return [ref];
  return ref.rows.sources
    .flatMap(({ tensor, lowRank }) => [tensor, ...(lowRank ? [lowRank.a, lowRank.b] : [])])
    .flatMap(tensorsToRead);
}

/** Whether two tensors have the same bytes: the same stored ones in the same rows. */
export function sameTensor(a: TensorRef, b: TensorRef | undefined): boolean {
  if (b === undefined || a.folder !== b.folder || a.file !== b.file || a.key !== b.key) return false;
  if (a.derived !== b.derived || a.begin !== b.begin || a.end !== b.end) return false;
  if (!a.rows || !b.rows) return a.rows === b.rows;
  return a.rows === b.rows || sameRows(a.rows, b.rows);
}

function sameRows(a: RowMap, b: RowMap): boolean {
  if (a.axis !== b.axis || a.source.length !== b.source.length) return false;
  const same = (x: number, y: number) =>
    x < 0 || y < 0 ? x === y : sameSource(a.sources[x]!, b.sources[y]!);
  const rows = a.source.every((source, i) => {
    const other = b.source[i]!;
    if (!same(source, other)) return false;
    return source < 0 || a.row[i] === b.row[i];
  });
  const [one, two] = [a.sums, b.sums];
  const alike = (['begin', 'row', 'weight', 'norm'] as const).every((part) =>
    sameNumbers(one?.[part], two?.[part]),
  );
  return rows && alike && (one?.source.every((source, i) => same(source, two!.source[i]!)) ?? true);
}

type Numbers = Int32Array | Float64Array | undefined;

function sameNumbers(a: Numbers, b: Numbers): boolean {
  return a === b || (a?.length === b?.length && a!.every((value, i) => value === b![i]));
}

/** A stored row that is a part of a sum. */
export interface RowPart {
  source: number;
  row: number;
  weight: number;
}

/** Sums with these parts, by output row. */
export function rowSums(rows: number, parts: ReadonlyMap<number, readonly RowPart[]>): RowSums {
  const begin = new Int32Array(rows + 1);
  for (let i = 0; i < rows; i++) begin[i + 1] = begin[i]! + (parts.get(i)?.length ?? 0);
  const all = Array.from({ length: rows }, (_, i) => parts.get(i) ?? []).flat();
  return {
    begin,
    source: Uint16Array.from(all, (part) => part.source),
    row: Int32Array.from(all, (part) => part.row),
    weight: Float64Array.from(all, (part) => part.weight),
  };
}

function sameSource(a: RowSource, b: RowSource): boolean {
  return sameTensor(a.tensor, b.tensor) && a.lowRank?.a === b.lowRank?.a && a.lowRank?.b === b.lowRank?.b;
}
