/**
 * The Gram merge of LoRAs of one module, their changes in place of inputs: τ = ΣτᵢGᵢ · (ΣGᵢ)⁻¹ with τᵢ = wᵢsᵢBᵢAᵢ and
 * Gᵢ = τᵢᵀτᵢ/‖τᵢ‖² + I/d, d inputs (docs/importance-mathematics.md; Cheng et al. 2025). All of it happens in the space that
 * the rows of the Aᵢ span: with Q an orthonormal basis of it and Pᵢ = τᵢQ, the result is N·Qᵀ with
 * N = ΣPᵢHᵢ · (ΣHᵢ)⁻¹, Hᵢ = PᵢᵀPᵢ/‖Pᵢ‖² + I/d. Nothing is lost by staying there, since what is outside has no change.
 */
import { addTo, type Columns, column, dot, product, transposed, zeroColumns } from '../linalg/columns';
import { thinQr } from '../linalg/householder';
import { dividePositive } from '../linalg/solve-positive';

/** One change: scale · B · A. */
interface ScaledFactors {
  /** [rank, inputs], row after row */
  a: Float32Array;
  /** [outputs, rank], row after row */
  b: Float32Array;
  rank: number;
  /** α/r times the weight. */
  factor: number;
}

/** τ = N · Qᵀ. */
interface GramFactors {
  /** [outputs, rank] */
  n: Columns;
  /** [inputs, rank], orthonormal */
  q: Columns;
}

/** @param changes of one module; those that are zero do not count */
export function gramFactors(changes: readonly ScaledFactors[]): GramFactors {
  const inputs = changes[0]!.a.length / changes[0]!.rank;
  const outputs = changes[0]!.b.length / changes[0]!.rank;
  const q = basisOf(changes, inputs);
  const right = zeroColumns(outputs, q.cols);
  const total = zeroColumns(q.cols, q.cols);
  for (const { a, b, rank, factor } of changes) {
    // A of rows is Aᵀ of columns
    const rows = { rows: inputs, cols: rank, data: Float64Array.from(a) };
    const columns = transposed({ rows: rank, cols: outputs, data: Float64Array.from(b, (v) => v * factor) });
    const p = product(columns, product(transposed(rows), q));
    const square = dot(p.data, p.data);
    if (square === 0) continue;
    const h = zeroColumns(q.cols, q.cols);
    for (let j = 0; j < q.cols; j++) {
      for (let i = 0; i <= j; i++) {
        const value = dot(column(p, i), column(p, j)) / square + (i === j ? 1 / inputs : 0);
        h.data[j * q.cols + i] = value;
        h.data[i * q.cols + j] = value;
      }
    }
    addTo(total.data, 1, h.data);
    addTo(right.data, 1, product(p, h).data);
  }
  // nothing changes anything
  if (total.data.every((v) => v === 0)) return { n: right, q };
  return { n: dividePositive(right, total), q };
}

/** An orthonormal basis of the row space of all A, of as many vectors as there are rows, or inputs. */
function basisOf(changes: readonly ScaledFactors[], inputs: number): Columns {
  const rank = changes.reduce((sum, change) => sum + change.rank, 0);
  if (rank >= inputs) {
    const whole = zeroColumns(inputs, inputs);
    for (let i = 0; i < inputs; i++) whole.data[i * inputs + i] = 1;
    return whole;
  }
  const stacked = zeroColumns(inputs, rank);
  let at = 0;
  for (const { a } of changes) {
    stacked.data.set(a, at);
    at += a.length;
  }
  return thinQr(stacked).q;
}
