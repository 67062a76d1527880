/** The randomized range finder (Halko, Martinsson and Tropp 2011, algorithm 4.4) over any way to multiply by a matrix. */
import type { Columns } from './columns';
import { thinQr } from './householder';

/** Power iterations: the error is then within 1 % of the best for spectra as flat as i^-½. */
export const POWER_ITERATIONS = 2;

interface LinearMap {
  times(x: Columns): Columns | Promise<Columns>;
  transposedTimes(y: Columns): Columns | Promise<Columns>;
}

/** max(10, r/8) columns more than wanted catch what the random start misses. */
export function sketchWidth({ rows, cols }: { rows: number; cols: number }, count: number): number {
  return Math.min(count + Math.max(10, Math.ceil(count / 8)), rows, cols);
}

/** An orthonormal basis of (almost) the range of the matrix, as wide as the random `start` [cols, width]. */
export async function rangeBasis(map: LinearMap, start: Columns, iterations: number): Promise<Columns> {
  let y = await map.times(start);
  for (let i = 0; i < iterations; i++) {
    const z = await map.transposedTimes(thinQr(y).q);
    y = await map.times(thinQr(z).q);
  }
  return thinQr(y).q;
}
