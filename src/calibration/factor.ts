/** Cholesky factors of H + λ · mean(diag H) · I, and their inverses, on the device. */
import type { BackendBuffer } from '../backend/backend';
import {
  addDamped,
  choleskyTile,
  panelBlocks,
  TRIANGULAR_TILE,
  triangularPanel,
  triangularTile,
} from '../backend/kernels/factor';
import type { Queue } from '../forward/queue';

/** λ first tried, and the most: ten times as much after every failure. */
export const DAMPING = 0.01;
const MOST_DAMPING = 1;

/** Result of factoring H: the damping used, and what had to be corrected. */
export interface FactorResult {
  /** λ of H + λ · mean(diag H) · I that was used: 0.01, or ten times as much per retry; 0 where none is (wanda). */
  damping: number;
  /** Factorings that failed before, summed over blocks. */
  retries: number;
  /** Inputs that were zero for every token (H_jj = 0). */
  dead: number;
  /** No damping up to 1 gave a factor, and the diagonal of H was used in place of H (in one block at least). */
  fellBackToDiagonal: boolean;
}

/** The results of several blocks as one. */
export function joinResults(results: readonly FactorResult[]): FactorResult {
  return {
    damping: Math.max(0, ...results.map((f) => f.damping)),
    retries: results.reduce((sum, f) => sum + f.retries, 0),
    dead: results.reduce((sum, f) => sum + f.dead, 0),
    fellBackToDiagonal: results.some((f) => f.fellBackToDiagonal),
  };
}

/** Enqueues y = (add ? y : 0) + scale · S (maybe reversed) + shift · I; see shaders/factor/add-damped.wgsl. */
export function enqueueDamped(
  queue: Queue,
  s: BackendBuffer,
  y: BackendBuffer,
  width: number,
  { scale, shift, reversed = false, add = false, fillDead = false }: DampedTerms,
): void {
  queue.run(addDamped, {
    params: { width, reversed: +reversed, add: +add, fill_dead: +fillDead, scale, shift },
    buffers: { s, y },
  });
}

interface DampedTerms {
  scale: number;
  shift: number;
  reversed?: boolean;
  add?: boolean;
  fillDead?: boolean;
}

/**
 * Factors a damped matrix in place: A = L·Lᵀ. What lies above the diagonal tiles keeps A's values.
 *
 * @param first damping to try
 * @param fill enqueues A with the damping λ into the buffer, and returns what λ adds to the diagonal
 * @returns the λ that worked, or 0 when none did, and the failures
 */
export async function factorDamped(
  queue: Queue,
  factor: BackendBuffer,
  width: number,
  fill: (damping: number) => number,
  first = DAMPING,
): Promise<Pick<FactorResult, 'damping' | 'retries' | 'fellBackToDiagonal'>> {
  let retries = 0;
  for (let damping = first; damping <= MOST_DAMPING; damping *= 10) {
    const added = fill(damping);
    // in exact arithmetic no pivot is below what the damping adds: one far below it is rounding error
    const floor = Math.max(added / 4, 2 ** -100);
    if (await cholesky(queue, factor, width, floor)) return { damping, retries, fellBackToDiagonal: false };
    retries++;
  }
  return { damping: 0, retries, fellBackToDiagonal: true };
}

/** Left-looking blocked Cholesky in place. False when a pivot fell below `floor` or was no number. */
async function cholesky(queue: Queue, factor: BackendBuffer, width: number, floor: number): Promise<boolean> {
  const failed = queue.allocate(4, 'failed pivot');
  const width4 = width / 4;
  for (let column = 0; column < width; column += TRIANGULAR_TILE) {
    const below = Math.max(0, width - column - TRIANGULAR_TILE);
    const params = { width4, column4: column / 4, unit: 0 };
    if (column > 0) {
      for (const part of panelRows(queue, column, width, column)) {
        const own = { ...params, ...part };
        queue.run(triangularPanel.own, { params: own, buffers: { factor } }, 16 * panelBlocks(own) * column);
      }
    }
    queue.run(choleskyTile, { params: { width, column, floor }, buffers: { factor, failed } });
    if (below > 0) {
      queue.run(triangularTile.own, {
        params: { ...params, rows: below, first_row: column + TRIANGULAR_TILE },
        buffers: { factor },
      });
    }
    await queue.breathe();
  }
  const [bytes] = await queue.read([{ buffer: failed, byteLength: 4 }]);
  queue.free(failed);
  return new Uint32Array(bytes!.buffer)[0] === 0;
}

/**
 * N = L⁻ᵀ, upper triangular with zeros below, f32 [width, width]: A⁻¹ = N·Nᵀ. By solving N·Lᵀ = I.
 * The caller frees it.
 */
export async function inverseTransposed(
  queue: Queue,
  factor: BackendBuffer,
  width: number,
): Promise<BackendBuffer> {
  const inverse = queue.allocate(width ** 2 * 4, 'inverse factor');
  enqueueDamped(queue, factor, inverse, width, { scale: 0, shift: 1 });
  for (let column = 0; column < width; column += TRIANGULAR_TILE) {
    // rows below the tile are zero in these columns
    const rows = Math.min(width, column + TRIANGULAR_TILE);
    enqueuePanel(queue, factor, inverse, { width, column, rows, unit: true });
    queue.run(triangularTile.other, {
      params: { rows, first_row: 0, width4: width / 4, column4: column / 4, unit: 1 },
      buffers: { factor, x: inverse },
    });
    await queue.breathe();
  }
  return inverse;
}

/** Enqueues X[r, c] -= Σ_{k < column} X[r, k] · L[c, k] for the 32 columns from `column` on. */
function enqueuePanel(
  queue: Queue,
  factor: BackendBuffer,
  x: BackendBuffer,
  { width, column, rows, unit }: { width: number; column: number; rows: number; unit: boolean },
): void {
  if (column === 0) return;
  for (const part of panelRows(queue, 0, rows, column)) {
    const params = { ...part, width4: width / 4, column4: column / 4, unit: +unit };
    queue.run(triangularPanel.other, { params, buffers: { factor, x } }, 16 * panelBlocks(params) * column);
  }
}

/** Rows first … end of a panel left of `column`, in parts that keep a dispatch short; fours of rows stay together. */
function panelRows(
  queue: Queue,
  first: number,
  end: number,
  column: number,
): { rows: number; first_row: number }[] {
  const most = Math.max(4, Math.floor(queue.dispatchWork / (TRIANGULAR_TILE * column) / 4) * 4);
  return Array.from({ length: Math.ceil((end - first) / most) }, (_, i) => {
    const first_row = first + i * most;
    return { rows: Math.min(most, end - first_row), first_row };
  });
}
