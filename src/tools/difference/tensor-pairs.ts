/** The tensors of two models side by side: which can be compared, and what stands alone or has another shape. */
import { BLOCK } from '../../backend/kernel';
import { PANEL_CHUNK } from '../../backend/kernels/products';
import { type Dtype, isWeightDtype } from '../../formats/dtype';
import type { Model, ModelTensor } from '../../inputs/model';
import { elementCount } from '../../inputs/opened-model';
import { sameTensor } from '../../inputs/row-map';
import { isPlain } from '../../merge/plan/untouched-tensors';
import type { MatrixShape } from '../../merge/tensor/panel-products';
import type { Tile } from '../../merge/tensor/tiles';
import { inTensorOrder } from '../../models/tensor-role';

export interface TensorPair {
  /** Name in the base. */
  name: string;
  /** Name in both models' tables: without the family's prefix. */
  key: string;
  base: ModelTensor;
  tuned: ModelTensor;
}

export interface TensorPairs {
  /** Same shape, both F32, F16 or BF16; in natural order. */
  shared: TensorPair[];
  /** Same shape, but of a dtype that is not computed with: compared byte by byte. */
  raw: TensorPair[];
  onlyInBase: string[];
  onlyInFinetuned: string[];
  shapeMismatches: { name: string; base: number[]; finetuned: number[] }[];
}

/** Pairs the tensors of two models by their names without the family's prefix. Nothing is read. */
export function pairTensors(base: Model, tuned: Model): TensorPairs {
  const pairs: TensorPair[] = [];
  const alone: { name: string }[] = [];
  for (const [key, tensor] of base.tensors) {
    const other = tuned.tensors.get(key);
    if (other) pairs.push({ name: tensor.name, key, base: tensor, tuned: other });
    else alone.push({ name: tensor.name });
  }
  const added = [...tuned.tensors]
    .filter(([key]) => !base.tensors.has(key))
    .map(([, { name }]) => ({ name }));
  const ordered = inTensorOrder(pairs);
  const fits = ({ base: a, tuned: b }: TensorPair) => sameShape(a.shape, b.shape);
  const weights = ({ base: a, tuned: b }: TensorPair) =>
    isWeightDtype(valueDtype(a)) && isWeightDtype(valueDtype(b));
  return {
    shared: ordered.filter((pair) => fits(pair) && weights(pair)),
    raw: ordered.filter((pair) => fits(pair) && !weights(pair)),
    onlyInBase: inTensorOrder(alone).map(({ name }) => name),
    onlyInFinetuned: inTensorOrder(added).map(({ name }) => name),
    shapeMismatches: ordered
      .filter((pair) => !fits(pair))
      .map(({ name, base: a, tuned: b }) => ({ name, base: [...a.shape], finetuned: [...b.shape] })),
  };
}

/** Dtype of the stored values a version starts from: an adapter may bring another than the checkpoint has. */
export function valueDtype(tensor: ModelTensor): Dtype {
  return tensor.view.origin.dtype;
}

/** Stored bytes of both versions; one is counted when they are the same. */
export function pairBytes({ base, tuned }: TensorPair): number {
  const a = base.view.origin;
  const b = tuned.view.origin;
  return a === b ? a.end - a.begin : a.end - a.begin + b.end - b.begin;
}

/** False where both versions are the same stored bytes, so that they need not be read. */
export function mayDiffer({ base, tuned }: TensorPair): boolean {
  const isSame = isPlain(base.view) && isPlain(tuned.view) && sameTensor(base.view.origin, tuned.view.origin);
  return !isSame;
}

export function pairElements({ base }: TensorPair): number {
  return elementCount(base.shape);
}

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((extent, i) => extent === b[i]);
}

/** Sums are made of pieces of so many elements, whoever measures them, so that they do not depend on threads. */
const PIECE_ELEMENTS = 2 ** 23;

/** The pieces of a tensor that its sums are made of. */
export function piecesOf(pair: TensorPair): Tile[] {
  return cutRows(matrixShape(pair.base.shape), PIECE_ELEMENTS);
}

/** A tensor seen as a matrix: its last dimension are the columns; a vector is one row. */
export function matrixShape(shape: readonly number[]): MatrixShape {
  const cols = shape.at(-1) ?? 1;
  return { rows: shape.slice(0, -1).reduce((n, extent) => n * extent, 1), cols };
}

/**
 * Cuts a matrix, or a piece of it that was cut so, into tiles of at most `tileElements`: whole rows, a multiple of 64 of them
 * where that many fit, so that products do not depend on the tile size; a row that does not fit is cut at multiples of 4096
 * columns.
 */
export function cutRows(
  { rows, cols }: MatrixShape,
  tileElements: number,
  { begin: from, end }: Tile = { begin: 0, end: rows * cols },
): Tile[] {
  const tiles: Tile[] = [];
  const fit = Math.floor(tileElements / cols);
  const whole = (fit < PANEL_CHUNK ? fit : Math.floor(fit / PANEL_CHUNK) * PANEL_CHUNK) * cols;
  const size = whole > 0 ? whole : Math.floor(tileElements / BLOCK) * BLOCK;
  for (let begin = from; begin < end; ) {
    const row = whole > 0 ? end : Math.min(end, (Math.floor(begin / cols) + 1) * cols);
    const stop = Math.min(begin + size, row);
    tiles.push({ begin, end: stop });
    begin = stop;
  }
  return tiles;
}
