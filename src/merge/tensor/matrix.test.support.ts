/** Matrices of known spectrum on an engine, for tests of what is computed from them. */
import type { Backend } from '../../backend/backend';
import { type Columns, column, product, transposed, zeroColumns } from '../../linalg/columns';
import { thinQr } from '../../linalg/householder';
import { gaussian } from './decomposition';
import { type Matrix, matrixOf as onPanels } from './panel-products';

/** Σ sᵢ·uᵢ·vᵢᵀ with random orthonormal vectors, rounded to f32. */
export function matrixOf(rows: number, cols: number, s: readonly number[], seed = 1): Columns {
  const u = thinQr(gaussian(rows, s.length, [seed, 1])).q;
  const v = thinQr(gaussian(cols, s.length, [seed, 2])).q;
  for (const [i, value] of s.entries()) column(u, i).set(column(u, i).map((x) => x * value));
  const out = product(u, transposed(v));
  for (let i = 0; i < out.data.length; i++) out.data[i] = Math.fround(out.data[i]!);
  return out;
}

/** The matrix on the engine, visited in panels of `panelRows` (a multiple of 64). */
export function onEngine(engine: Backend, { rows, cols, data }: Columns, panelRows = rows): Matrix {
  const values = new Float32Array(rows * cols);
  for (let j = 0; j < cols; j++) for (let i = 0; i < rows; i++) values[i * cols + j] = data[j * rows + i]!;
  const buffer = engine.allocate(values.byteLength, 'test matrix');
  engine.write(buffer, 0, new Uint8Array(values.buffer));
  return onPanels({
    engine,
    rows,
    cols,
    async pass(visit) {
      for (let row = 0; row < rows; row += panelRows) {
        await visit({ buffer, first: row * cols, row, rows: Math.min(panelRows, rows - row) });
      }
    },
  });
}

/** ‖a − U·S·Vᵀ‖ for the first `rank` terms. */
export function residual(a: Columns, svd: { s: Float64Array; u: Columns; v: Columns }, rank: number): number {
  const rest = zeroColumns(a.rows, a.cols);
  rest.data.set(a.data);
  for (let i = 0; i < Math.min(rank, svd.s.length); i++) {
    const u = column(svd.u, i);
    for (let j = 0; j < a.cols; j++) {
      const scale = svd.s[i]! * svd.v.data[i * a.cols + j]!;
      const out = column(rest, j);
      for (let r = 0; r < a.rows; r++) out[r]! -= scale * u[r]!;
    }
  }
  return norm(rest.data);
}

export function norm(values: Iterable<number>): number {
  let sum = 0;
  for (const x of values) sum += x * x;
  return Math.sqrt(sum);
}
