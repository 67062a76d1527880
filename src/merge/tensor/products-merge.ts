/**
 * Methods whose result is a combination Σ cᵢ·vᵢ with coefficients from the scalar products of the vectors: slerp and its
 * relatives, the Karcher mean, Model Stock. One pass takes the products, the host solves for the coefficients in f64,
 * another pass combines. Row by row both happen in one pass, for a tile holds whole rows.
 */

import type { BackendBuffer } from '../../backend/backend';
import { exactFloats } from '../../backend/exact';
import {
  COLUMN_ROWS,
  columnGroups,
  columnProducts,
  innerProducts,
  pairCount,
} from '../../backend/kernels/products';
import { weightedSum } from '../../backend/kernels/sums';
import { AmalgamError } from '../../errors';
import type { ProductsCompute } from '../method';
import { TileSums } from './delta-measure';
import { type Products, productsOf } from './products';
import { type Emit, type TensorStatistics, vectorStatistics } from './tensor-outcome';
import type { SlotForm, TensorTask } from './tensor-task';
import { packing } from './tile-encoding';
import { columnStride, groupsOf, rowLength, type VectorGroups } from './tiles';

/** Contents of the slots: task vectors where the method asks for them and there is a base. */
export function productsForm(method: ProductsCompute, hasBase: boolean): SlotForm {
  if (method.vectors === 'weights' || (method.vectors === 'changes if base' && !hasBase)) return 'weights';
  return 'delta';
}

export function productsGroups(
  method: ProductsCompute,
  plan: Pick<TensorTask['plan'], 'parameters' | 'shape'>,
): VectorGroups {
  return groupsOf(method.groups?.(plan.parameters, plan.shape) ?? 'tensor', plan.shape);
}

/** Merges one tensor. @throws AmalgamError `NonFinite`, `MergeUndefined` where the method has no result */
export async function mergeByProducts(
  task: TensorTask,
  method: ProductsCompute,
  nonFinite: 'stop' | 'carry',
  emit: Emit,
): Promise<TensorStatistics> {
  const { plan } = task;
  const changes = productsForm(method, plan.base !== undefined) === 'delta';
  // the vectors of the method: the changes, or the weights, of which the base is the first where there is one
  const from = changes || !plan.base ? 1 : 0;
  const solve = (products: Products): number[] => {
    if (!allFinite(products)) {
      // NaN among the values was refused when they were read, or is to be carried through
      if (nonFinite === 'stop')
        throw undefinedMerge(plan.name, 'its values are too large: their squares overflow');
      return new Array<number>(products.count + (changes ? 1 : 0)).fill(Number.NaN);
    }
    const found = method.coefficients(
      products,
      plan.models.map((m) => m.parameters),
      plan.parameters,
    );
    if (!Array.isArray(found)) throw undefinedMerge(plan.name, found.undefined);
    return changes ? [1, ...found] : found;
  };
  const slot = changes ? 0 : from;
  const sums = new TileSums(task, nonFinite);
  if (nonFinite === 'carry' && !changes) [task, emit] = withoutShared(task, emit, from, sums);
  const groups = productsGroups(method, plan);
  if (groups === 'rows') await mergeRows(task, solve, { from, slot, changes }, sums, emit);
  else {
    const lists =
      groups === 'tensor'
        ? await solveTensor(task, solve, from, sums)
        : await solveColumns(task, solve, from, sums);
    const per = groups === 'tensor' ? WHOLE : 1;
    const sum = layOut(lists, changes ? 'changes' : 'weights', { slot, per });
    await withTable(task, sum, async (run) => {
      await task.pass(async (_, elements) => {
        run(elements);
        await sums.finish(elements, true, emit);
      });
    });
  }
  return vectorStatistics(task, sums, {
    change: plan.base ? sums.change : 0,
  });
}

/**
 * The tensor without the infinities that all its vectors have, of which no product can be taken: zeros stand in their places
 * while it is merged, and the bytes that are emitted have them again. (Changes to a base have none: there they are zero.)
 * @param from slot of the first vector
 */
function withoutShared(task: TensorTask, emit: Emit, from: number, sums: TileSums): [TensorTask, Emit] {
  const { plan, work } = task;
  const { engine, values, status, stride } = work;
  const slots = Array.from({ length: plan.models.length + 1 - from }, (_, i) => from + i);
  const found = new Map<number, Map<number, number>>();
  let shared = new Map<number, number>();
  const take = async (begin: number, elements: number): Promise<Map<number, number>> => {
    const [counts] = await engine.read([{ buffer: status, byteLength: status.byteLength }]);
    const bad = new Uint32Array(counts!.buffer, counts!.byteOffset);
    if (!slots.every((slot) => bad[slot]! > 0)) return new Map();
    const ranges = slots.map((slot) => ({
      buffer: values,
      byteOffset: slot * stride * 4,
      byteLength: elements * 4,
    }));
    const bits = (await engine.read(ranges)).map((tile) => new Uint32Array(tile.slice().buffer));
    const places = found.get(begin) ?? new Map<number, number>();
    // a tensor of one tile is found as it was left, with zeros
    if (!found.has(begin)) {
      bits[0]!.forEach((value, e) => {
        const isInfinite = (value & 0x7fffffff) === 0x7f800000;
        if (isInfinite && bits.every((vector) => vector[e] === value)) places.set(e, value >>> 31);
      });
      found.set(begin, places);
    }
    for (const [i, vector] of bits.entries()) {
      for (const e of places.keys()) vector[e] = 0;
      if (places.size > 0) engine.write(values, slots[i]! * stride * 4, new Uint8Array(vector.buffer));
    }
    return places;
  };
  const cleaned: TensorTask = {
    ...task,
    pass: (visit, readsBack) =>
      task.pass(async (tile, elements) => {
        shared = await take(tile.begin, elements);
        await visit(tile, elements);
      }, readsBack),
  };
  return [
    cleaned,
    async (bytes) => {
      const high = plan.dtype === 'F16' ? 0x7c : 0x7f;
      const width = plan.dtype === 'F32' ? 4 : 2;
      for (const [e, negative] of shared) {
        const end = (e + 1) * width;
        bytes.fill(0, end - width, end);
        bytes[end - 1] = high | (negative << 7);
        if (plan.dtype !== 'F16') bytes[end - 2] = 0x80;
      }
      sums.nonFinite += shared.size;
      await emit(bytes);
    },
  ];
}

type Solve = (products: Products) => number[];

function allFinite(products: Products): boolean {
  for (let i = 0; i < products.count; i++) {
    for (let j = i; j < products.count; j++) if (!Number.isFinite(products.at(i, j))) return false;
  }
  return true;
}

async function solveTensor(
  task: TensorTask,
  solve: Solve,
  from: number,
  sums: TileSums,
): Promise<number[][]> {
  await task.pass(async (_, elements) => sums.measure(elements));
  return [solve(sums.products.products(from))];
}

/** One list of coefficients per column. */
async function solveColumns(
  task: TensorTask,
  solve: Solve,
  from: number,
  sums: TileSums,
): Promise<number[][]> {
  const { work, plan } = task;
  const { engine, stride } = work;
  const vectors = plan.models.length + 1;
  const pairs = pairCount(vectors);
  const cols = columnStride(plan.shape);
  const totals = Array.from({ length: cols }, () => new Float64Array(pairs));
  await task.pass(async (_, elements) => {
    await sums.measure(elements);
    const rows = elements / cols;
    const words = Math.ceil(rows / COLUMN_ROWS) * pairs * cols;
    const buffer = engine.allocate(words * 4, 'column products');
    engine.run(columnProducts, {
      params: { elements, slot: 0, stride, count: vectors, cols },
      buffers: { values: work.values, sums: buffer },
      groups: columnGroups(rows, cols),
      elements,
    });
    const [bytes] = await engine.read([{ buffer, byteLength: words * 4 }]);
    engine.free(buffer);
    const partial = new Float32Array(bytes!.buffer);
    for (let i = 0; i < partial.length; i++) {
      totals[i % cols]![Math.floor(i / cols) % pairs]! += partial[i]!;
    }
  });
  return totals.map((column) => solve(productsOf(column, vectors, from)));
}

/** Row by row, in one pass. */
async function mergeRows(
  task: TensorTask,
  solve: Solve,
  { from, slot, changes }: { from: number; slot: number; changes: boolean },
  sums: TileSums,
  emit: Emit,
): Promise<void> {
  const { work, plan } = task;
  const { engine, stride } = work;
  const vectors = plan.models.length + 1;
  const pairs = pairCount(vectors);
  const cols = rowLength(plan.shape);
  await task.pass(async (_, elements) => {
    await sums.measure(elements);
    const rows = elements / cols;
    const buffer = engine.allocate(rows * pairs * 4, 'row products');
    engine.run(innerProducts, {
      params: { elements, slot: 0, stride, count: vectors, run: cols },
      buffers: { values: work.values, sums: buffer },
    });
    const [bytes] = await engine.read([{ buffer, byteLength: rows * pairs * 4 }]);
    engine.free(buffer);
    const products = new Float32Array(bytes!.buffer);
    const lists = Array.from({ length: rows }, (_, row) =>
      solve(productsOf(products.subarray(row * pairs, (row + 1) * pairs), vectors, from)),
    );
    const sum = layOut(lists, changes ? 'changes' : 'weights', { slot, per: cols });
    await withTable(task, sum, async (run) => {
      run(elements);
      await sums.finish(elements, true, emit);
    });
  });
}

/** Puts the table of a sum on the device while `use` runs. */
async function withTable(
  task: TensorTask,
  sum: WeightedSum,
  use: (run: (elements: number) => void) => Promise<void>,
): Promise<void> {
  const { engine } = task.work;
  const table = engine.allocate(sum.table.byteLength, 'coefficients');
  engine.write(table, 0, new Uint8Array(sum.table.buffer));
  try {
    await use((elements) => runWeightedSum(task, sum, table, elements));
  } finally {
    engine.free(table);
  }
}

function undefinedMerge(tensor: string, reason: string): AmalgamError {
  return new AmalgamError(
    'MergeUndefined',
    `${tensor}: ${reason}.`,
    'Change the weights, leave one of the models out, or choose another method.',
  );
}

// Coefficient tables of the weighted-sum kernel: Σ cᵢvᵢ written so that equal vectors give their own bits.

/** Coefficients that add up to 1 within this are an affine combination; far below what f32 resolves. */
const AFFINE = 1e-9;

/** How vectors in neighboring slots are added up. */
export interface WeightedSum {
  /** First slot, and how many vectors from there. */
  slot: number;
  count: number;
  /** The vector all others are held against: the first that counts anywhere. */
  anchor: number;
  /** Group of an element e: ⌊e / per⌋ mod groups. */
  per: number;
  groups: number;
  /** Per group: b, k, c₀ … (shaders/sums/weighted-sum.wgsl). */
  table: Float32Array<ArrayBuffer>;
}

/**
 * Lays out Σ cᵢvᵢ for groups of elements.
 * @param coefficients one list per group
 * @param form `changes`: vector 0 is the base with coefficient 1, the others are changes to it
 */
export function layOut(
  coefficients: readonly (readonly number[])[],
  form: 'weights' | 'changes',
  where: { slot: number; per: number },
): WeightedSum {
  const count = coefficients[0]!.length;
  const counting = Array.from({ length: count }, (_, i) => coefficients.some((c) => c[i] !== 0));
  const anchor = Math.max(0, counting.indexOf(true));
  const table = new Float32Array(coefficients.length * (count + 2));
  for (const [g, c] of coefficients.entries()) {
    const sum = c.reduce((a, b) => a + b, 0);
    const affine = form === 'weights' && Math.abs(sum - 1) <= AFFINE;
    table.set([affine ? 1 : c[anchor]!, affine ? 1 : 0, ...c], g * (count + 2));
  }
  const { slot, per } = where;
  return { slot, count, anchor, per, groups: coefficients.length, table: exactFloats(table) };
}

/** One group for the whole tensor. */
export const WHOLE = 0xffffffff;

/**
 * Enqueues the sum of the tile's vectors, packed, into `work.packed` and its change into `work.stats`; the table is in
 * `coefficients`.
 */
export function runWeightedSum(
  task: TensorTask,
  { slot, count, anchor, per, groups }: Omit<WeightedSum, 'table'>,
  coefficients: BackendBuffer,
  elements: number,
): void {
  const { work } = task;
  const { values, packed, stats: sums, status, stride } = work;
  work.engine.run(weightedSum, {
    params: { elements, slot: slot * stride, stride, count, anchor, per, groups, ...packing(task) },
    buffers: { values, coefficients, packed, sums, status },
  });
}
