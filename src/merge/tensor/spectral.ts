/**
 * The changes of one matrix by their singular directions: what methods of the kind `spectral` compute with. Changes that are
 * LoRAs are decomposed from their factors, others panel by panel on the engine. Loaded when a matrix needs it.
 */
import { loadFactorValues } from '../../inputs/stored-tensor';
import { type Columns, firstColumns, product, transposed, zeroColumns } from '../../linalg/columns';
import { thinProductSvd } from '../../linalg/product-svd';
import { type Svd, smallSvd } from '../../linalg/small-svd';
import { decompose, decomposesExactly } from './decomposition';
import { type Matrix, type MatrixShape, matrixOf } from './panel-products';
import { runLowRank, type TensorTask, uploadFactors } from './tensor-task';
import type { Tile } from './tiles';
import type { Workspace } from './workspace';

/** left · rightᵀ: left [rows, k], right [cols, k]. */
export interface Factored {
  left: Columns;
  right: Columns;
}

/** A change, or what is made of several. */
export interface Change extends Matrix {
  factors?: Factored;
  /** Largest singular value of what this is a part of. */
  whole?: number;
}

export interface MatrixChanges extends MatrixShape {
  /** One per contributor; of rank 0 where one changes nothing. */
  each: readonly Change[];
  /** The largest singular values, descending, what is rounding left out: as many as wanted at most. */
  svd(change: Change, wanted: number): Promise<Svd>;
  sum(changes: readonly Change[]): Change;
  /** The change less its part in the directions. */
  outside(directions: Svd, change: Change): Change;
  /** [Δ₁ | Δ₂ | …] */
  beside(changes: readonly Change[]): Change;
  /**
   * The directions of several, made orthogonal left and right each by itself: the nearest matrices with orthonormal columns
   * (rows, where there are more directions than room); with their own singular values, or all with the mean of them.
   */
  orthogonal(of: readonly Svd[], values: 'own' | 'alike'): Factored;
}

/** τ of a matrix, for slot 1 of the tiles; undefined where nothing changes. */
export interface OpenChange {
  fill(tile: Tile): void;
  close(): void;
}

/** Solves for the change of a matrix: of a small one in f64, of others as factors whose product the engine makes. */
export async function openChange(
  task: TensorTask,
  solve: (changes: MatrixChanges) => Promise<Factored>,
  seed: number,
): Promise<OpenChange | undefined> {
  const { left, right } = await solve(await matrixChanges(task, seed));
  return left.cols === 0 ? undefined : openProduct(task.work, left, right);
}

/** left · rightᵀ for slot 1 of the tiles. */
export function openProduct(work: Workspace, left: Columns, right: Columns): OpenChange {
  const { engine, stride } = work;
  if (decomposesExactly({ rows: left.rows, cols: right.rows })) {
    // column after column of the transpose is row after row
    const values = Float32Array.from(product(right, transposed(left)).data);
    return {
      fill: ({ begin, end }) =>
        engine.write(work.values, stride * 4, new Uint8Array(values.slice(begin, end).buffer)),
      close() {},
    };
  }
  const [l, r] = [transposed(left), right].map(({ data }) => Float32Array.from(data));
  const factors = uploadFactors(engine, l!, r!, left.cols, right.rows, 1);
  return {
    fill: (tile) => runLowRank(work, tile, 1, factors, 0),
    close: () => factors.close(),
  };
}

/** Singular values this much below the largest are what f32 rounded when W₀ was taken off: a LoRA merged into its base has them. */
const NO_DIRECTION = 1e-5;

/** The changes of a tensor of two dimensions whose task has task vectors in its slots. */
export async function matrixChanges(task: TensorTask, seed: number): Promise<MatrixChanges> {
  const [rows, cols] = task.plan.shape as [number, number];
  const shape = { rows, cols };
  const factors = await loraFactors(task, shape);
  const each = task.plan.models.map((_, i) => (factors ? factored(factors[i]!) : inSlot(task, shape, i + 1)));
  const { name } = task.plan;
  return {
    ...shape,
    each,
    async svd(change, wanted) {
      const found = change.factors
        ? thinProductSvd(copy(change.factors.left), copy(change.factors.right))
        : await decompose(change, { count: wanted, seed, name });
      const least = NO_DIRECTION * Math.max(found.s[0] ?? 0, change.whole ?? 0);
      const count = Math.min(wanted, found.s.filter((value) => value > least).length);
      const first = (of: Columns) => firstColumns(of, count);
      return { s: found.s.slice(0, count), u: first(found.u), v: first(found.v) };
    },
    sum,
    outside,
    beside,
    orthogonal,
  };
}

/** The change in a slot of the tiles. */
function inSlot(task: TensorTask, { rows, cols }: MatrixShape, slot: number): Change {
  const { engine, values, stride } = task.work;
  return matrixOf({
    ...{ engine, rows, cols },
    pass: (visit) =>
      task.pass(({ begin, end }) =>
        visit({ buffer: values, first: slot * stride, row: begin / cols, rows: (end - begin) / cols }),
      ),
  });
}

/** The factors of all changes, where they are nothing else. */
async function loraFactors({ plan, read }: TensorTask, shape: MatrixShape) {
  const views = plan.models.map(({ view }) => view);
  const isPlain = views.every((v) => v.onBase && !v.addend && !v.lowRank?.magnitude);
  if (!isPlain) return undefined;
  return Promise.all(
    views.map(async ({ lowRank }): Promise<Factored> => {
      if (!lowRank) return { left: zeroColumns(shape.rows, 0), right: zeroColumns(shape.cols, 0) };
      const { rank, scale } = lowRank;
      const { left, right } = await loadFactorValues(lowRank, read);
      return {
        left: transposed({ rows: rank, cols: shape.rows, data: Float64Array.from(left, (x) => x * scale) }),
        right: { rows: shape.cols, cols: rank, data: Float64Array.from(right) },
      };
    }),
  );
}

function factored(factors: Factored): Change {
  const { left, right } = factors;
  return {
    ...{ rows: left.rows, cols: right.rows, factors },
    times: async (x) => product(left, product(transposed(right), x)),
    transposedTimes: async (y) => product(right, product(transposed(left), y)),
    values: async () => product(left, transposed(right)),
  };
}

const factorsOf = (changes: readonly Change[]) =>
  changes.every(({ factors }) => factors) ? changes.map(({ factors }) => factors!) : undefined;

function sum(changes: readonly Change[]): Change {
  const factors = factorsOf(changes);
  if (factors) {
    return factored({
      left: columns(factors.map(({ left }) => left)),
      right: columns(factors.map(({ right }) => right)),
    });
  }
  const added = async (part: (change: Change) => Promise<Columns>) => {
    const [first, ...rest] = changes;
    const total = await part(first!);
    for (const change of rest) {
      const { data } = await part(change);
      for (let i = 0; i < data.length; i++) total.data[i]! += data[i]!;
    }
    return total;
  };
  const { rows, cols } = changes[0]!;
  return {
    ...{ rows, cols },
    times: (x) => added((change) => change.times(x)),
    transposedTimes: (y) => added((change) => change.transposedTimes(y)),
    values: () => added((change) => change.values()),
  };
}

function outside({ s, u }: Svd, change: Change): Change {
  const without = (x: Columns): Columns => {
    const inside = product(u, product(transposed(u), x));
    return { ...x, data: x.data.map((value, i) => value - inside.data[i]!) };
  };
  const { rows, cols, factors } = change;
  const whole = s[0] ?? 0;
  if (factors) return { ...factored({ ...factors, left: without(factors.left) }), whole };
  return {
    ...{ rows, cols, whole },
    times: async (x) => without(await change.times(x)),
    transposedTimes: (y) => change.transposedTimes(without(y)),
    values: async () => without(await change.values()),
  };
}

function beside(changes: readonly Change[]): Change {
  const { rows, cols: width } = changes[0]!;
  const cols = width * changes.length;
  const factors = factorsOf(changes);
  if (factors) {
    const right = factors.map((of, i) => {
      const out = zeroColumns(cols, of.right.cols);
      for (let k = 0; k < of.right.cols; k++)
        out.data.set(of.right.data.subarray(k * width, (k + 1) * width), k * cols + i * width);
      return out;
    });
    return factored({ left: columns(factors.map(({ left }) => left)), right: columns(right) });
  }
  const part = (x: Columns, i: number): Columns => {
    const out = zeroColumns(width, x.cols);
    for (let k = 0; k < x.cols; k++)
      out.data.set(x.data.subarray(k * cols + i * width, k * cols + (i + 1) * width), k * width);
    return out;
  };
  return {
    ...{ rows, cols },
    async times(x) {
      const out = zeroColumns(rows, x.cols);
      for (const [i, change] of changes.entries()) {
        const { data } = await change.times(part(x, i));
        for (let e = 0; e < data.length; e++) out.data[e]! += data[e]!;
      }
      return out;
    },
    async transposedTimes(y) {
      const out = zeroColumns(cols, y.cols);
      for (const [i, change] of changes.entries()) {
        const { data } = await change.transposedTimes(y);
        for (let k = 0; k < y.cols; k++)
          out.data.set(data.subarray(k * width, (k + 1) * width), k * cols + i * width);
      }
      return out;
    },
    async values() {
      const all: Columns[] = [];
      for (const change of changes) all.push(await change.values());
      return columns(all);
    },
  };
}

function columns(of: readonly Columns[]): Columns {
  const out = zeroColumns(
    of[0]!.rows,
    of.reduce((n, { cols }) => n + cols, 0),
  );
  let at = 0;
  for (const { data } of of) {
    out.data.set(data, at);
    at += data.length;
  }
  return out;
}

/** Directions that are this little of the largest are rounding: of models that agree they would be made as large as it. */
const NOTHING = 1e-6;

function polar(of: Columns): Columns {
  const { s, u, v } = smallSvd(copy(of));
  const count = s.filter((value) => value > NOTHING * s[0]!).length;
  return product(firstColumns(u, count), transposed(firstColumns(v, count)));
}

function orthogonal(of: readonly Svd[], values: 'own' | 'alike'): Factored {
  const s = of.flatMap((svd) => [...svd.s]);
  const mean = s.reduce((total, value) => total + value, 0) / s.length;
  const [left, right] = (['u', 'v'] as const).map((side) => polar(columns(of.map((svd) => svd[side]))));
  const { rows, data } = left!;
  const scale = (i: number) => (values === 'own' ? s[Math.floor(i / rows)]! : mean);
  return { left: { ...left!, data: data.map((x, i) => x * scale(i)) }, right: right! };
}

function copy(of: Columns): Columns {
  return { ...of, data: of.data.slice() };
}
