/** Dense matrices on the host in f64, stored column after column: element (i, j) is data[j · rows + i]. */
export interface Columns {
  rows: number;
  cols: number;
  data: Float64Array;
}

export function zeroColumns(rows: number, cols: number): Columns {
  return { rows, cols, data: new Float64Array(rows * cols) };
}

/** Column j as a view. */
export function column({ rows, data }: Columns, j: number): Float64Array {
  return data.subarray(j * rows, (j + 1) * rows);
}

/** The first `count` columns as a view. */
export function firstColumns({ rows, data }: Columns, count: number): Columns {
  return { rows, cols: count, data: data.subarray(0, rows * count) };
}

export function transposed({ rows, cols, data }: Columns): Columns {
  const out = zeroColumns(cols, rows);
  for (let j = 0; j < cols; j++) for (let i = 0; i < rows; i++) out.data[i * cols + j] = data[j * rows + i]!;
  return out;
}

/** a · b for a [m, n] and b [n, k], column by column. */
export function product(a: Columns, b: Columns): Columns {
  const out = zeroColumns(a.rows, b.cols);
  for (let j = 0; j < b.cols; j++) {
    const sums = column(out, j);
    for (let k = 0; k < a.cols; k++) addTo(sums, b.data[j * b.rows + k]!, column(a, k));
  }
  return out;
}

/** Σ x[i] · y[i] */
export function dot(x: Float64Array, y: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i]! * y[i]!;
  return sum;
}

/** y += a · x */
export function addTo(y: Float64Array, a: number, x: Float64Array): void {
  if (a === 0) return;
  for (let i = 0; i < x.length; i++) y[i]! += a * x[i]!;
}
