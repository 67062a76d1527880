/** Trimming one change by importance: its mask, and values that make up for what went. */

import type { Backend, BackendBuffer } from '../backend/backend';
import { blockCount } from '../backend/kernel';
import { innerProducts, matrixDiagonal } from '../backend/kernels/products';
import { rowForm } from '../backend/kernels/rows';
import { HISTOGRAM_WORDS } from '../backend/kernels/search';
import { columnScore, maskRowWords, packMask, selectThreshold, trimRows } from '../backend/kernels/select';
import { counted } from '../formats/quantity';
import { createQueue, type Queue } from '../forward/queue';
import { densityOf } from '../merge/tensor/delta-selectors';
import { searchDigits } from '../merge/tensor/radix-search';
import { beginSearch, type KeySearch, keptCount, thresholdWords } from '../merge/tensor/radix-select';
import { compensate } from './compensation';
import { enqueueDamped, type FactorResult, factorDamped, inverseTransposed, joinResults } from './factor';
import { type Gram, type GramBlock, type Hessian, hessianOf } from './gram';

export interface TrimSettings {
  density: number;
  score: ScoreKind;
  scope: ScoreScope;
  compensation: 'cg' | 'off';
}

interface Trimmed {
  /** One bit per entry, rows filled up to 32 bits. The caller frees it. */
  mask: BackendBuffer;
  maskBytes: number;
  /** Compensated values of the kept elements; absent without compensation. The caller frees it. */
  tau?: BackendBuffer;
  factoring: FactorResult;
}

/** Trims τ [rows, cols], which stays as it is. @throws what `Backend.read` throws */
export async function trim(
  engine: Backend,
  tau: BackendBuffer,
  rows: number,
  cols: number,
  gram: Gram,
  { density, score, scope, compensation }: TrimSettings,
): Promise<Trimmed> {
  const { scale, factoring } = await columnScores(engine, gram, score);
  const mask = await keepMask(engine, tau, rows, cols, scale, density, scope);
  engine.free(scale);
  const trimmed = { mask, maskBytes: rows * maskRowWords(cols) * 4, factoring };
  if (compensation === 'off') return trimmed;
  return { ...trimmed, tau: await compensate(engine, tau, mask, rows, cols, gram) };
}

/** Notes for the user on factorings that needed more than the default damping, in sentences; empty where none did. */
export function factorNotes(
  where: string,
  { gram, results }: { gram: Gram; results: readonly FactorResult[] },
): string[] {
  const notes: string[] = [];
  const { form, width } = gram;
  if (form.kind === 'blocks') {
    const blocks = Math.ceil(width / form.width);
    notes.push(
      `${where}: the products of ${width} inputs do not fit; ${counted(blocks, 'block')} of ${form.width} were used.`,
    );
  }
  for (const { damping, retries, fellBackToDiagonal } of results) {
    if (fellBackToDiagonal) notes.push(`${where}: could not be factored; the diagonal was used instead.`);
    else if (retries > 0) notes.push(`${where}: needed a damping of ${damping}.`);
  }
  const dead = Math.max(0, ...results.map((f) => f.dead));
  if (dead > 0) notes.push(`${where}: ${dead} of ${width} inputs were zero throughout.`);
  return [...new Set(notes)];
}

/** The settings of a tensor and one of its contributors, from resolved parameters that were checked by the plan. */
export function trimSettings(
  parameters: Readonly<Record<string, number | boolean | string>>,
  model: Readonly<Record<string, number | boolean | string>>,
): TrimSettings {
  return {
    density: densityOf(model),
    score: parameters.score as ScoreKind,
    scope: parameters.scope as ScoreScope,
    compensation: parameters.compensation as TrimSettings['compensation'],
  };
}

// How much each input column matters. Every score of an entry is τ² · c_j with one c per column j.

/**
 * With H = 2/n · S, H_jj = 1 for dead inputs, and Hd = H + λ·mean(diag H)·I (docs/importance-mathematics.md):
 * wanda c = H_jj (Sun et al. 2023); obs c = 1/[Hd⁻¹]_jj (Hassibi and Stork 1993); sparsegpt c = 1/U_jj², Hd⁻¹ = UᵀU
 * (Frantar and Alistarh 2023).
 */
export type ScoreKind = 'wanda' | 'obs' | 'sparsegpt';

interface ColumnScores {
  /** √c_j, f32 [width]; 0 for dead inputs, whose weights change nothing. The caller frees it. */
  scale: BackendBuffer;
  factoring: FactorResult;
}

/** @throws RangeError when no token was added; what `Backend.read` throws */
export async function columnScores(engine: Backend, gram: Gram, score: ScoreKind): Promise<ColumnScores> {
  const hessian = await hessianOf(gram);
  const { roots, factoring } = await columnRoots(createQueue(engine), gram, hessian, score);
  for (const [j, h] of hessian.diagonal.entries()) if (h === 0) roots[j] = 0;
  const scale = engine.allocate(roots.byteLength, 'column scale');
  engine.write(scale, 0, new Uint8Array(roots.buffer));
  return { scale, factoring };
}

async function columnRoots(
  queue: Queue,
  gram: Gram,
  hessian: Hessian,
  score: ScoreKind,
): Promise<{ roots: Float32Array<ArrayBuffer>; factoring: FactorResult }> {
  const { dead } = hessian;
  if (score === 'wanda') {
    const factoring = { damping: 0, retries: 0, dead, fellBackToDiagonal: false };
    return { roots: Float32Array.from(hessian.diagonal, Math.sqrt), factoring };
  }
  // a diagonal H: 1/[Hd⁻¹]_jj = 1/U_jj² = Hd_jj
  const diagonal = Float32Array.from(hessian.diagonal, (h) => Math.sqrt(h + hessian.shift()));
  const factorings = [{ damping: hessian.damping, retries: 0, dead, fellBackToDiagonal: false }];
  for (const block of gram.blocks) {
    const found = await blockRoots(queue, block, hessian, score);
    if (found.roots) diagonal.set(found.roots, block.begin);
    factorings.push({ ...found.factoring, dead: 0 });
  }
  return { roots: diagonal, factoring: joinResults(factorings) };
}

/** √c_j of a block's columns; undefined when its H could not be factored. */
async function blockRoots(queue: Queue, block: GramBlock, hessian: Hessian, score: 'obs' | 'sparsegpt') {
  const { width, buffer } = block;
  const factor = queue.allocate(width ** 2 * 4, 'factor');
  // reversed, A = P·Hd·P = L·Lᵀ gives Hd = R·Rᵀ with R = P·L·P upper triangular, hence U_jj = 1/R_jj (one factoring)
  const reversed = score === 'sparsegpt';
  const factoring = await factorDamped(queue, factor, width, (damping) => {
    const shift = hessian.shift(damping);
    enqueueDamped(queue, buffer, factor, width, { scale: hessian.scale, shift, reversed, fillDead: true });
    return shift;
  });
  let roots: Float32Array | undefined;
  if (!factoring.fellBackToDiagonal) {
    roots = reversed
      ? (await pivots(queue, factor, width)).reverse()
      : await inverseRoots(queue, factor, width);
  }
  queue.free(factor);
  return { roots, factoring };
}

/** L_jj. */
async function pivots(
  queue: Queue,
  factor: BackendBuffer,
  width: number,
): Promise<Float32Array<ArrayBuffer>> {
  const diagonal = queue.allocate(width * 4, 'pivots');
  queue.run(matrixDiagonal, { params: { width, out: 0 }, buffers: { m: factor, diagonal } });
  const [bytes] = await queue.read([{ buffer: diagonal, byteLength: width * 4 }]);
  queue.free(diagonal);
  return new Float32Array(bytes!.buffer);
}

/** 1/√[A⁻¹]_jj: the rows of N = L⁻ᵀ have the squared norms [A⁻¹]_jj. */
async function inverseRoots(
  queue: Queue,
  factor: BackendBuffer,
  width: number,
): Promise<Float32Array<ArrayBuffer>> {
  const inverse = await inverseTransposed(queue, factor, width);
  const squares = queue.allocate(width * 4, 'row squares');
  queue.run(innerProducts, {
    params: { elements: width ** 2, slot: 0, stride: 0, count: 1, run: width },
    buffers: { values: inverse, sums: squares },
  });
  const [bytes] = await queue.read([{ buffer: squares, byteLength: width * 4 }]);
  queue.free(squares);
  queue.free(inverse);
  return new Float32Array(bytes!.buffer).map((square) => 1 / Math.sqrt(square));
}

// Masks of the most important elements of a task vector, one bit each.

/** Entries that compete for a share ρ: the whole tensor, each row, or each block of 128 columns (all rows). */
export type ScoreScope = 'tensor' | 'row' | 'block';

/** Columns of a block (Frantar and Alistarh 2023). */
const BLOCK_COLUMNS = 128;

/**
 * The mask of the k = clamp(⌊ρn⌋, 1, n) largest |τ| · √c_j of every scope (none for ρ = 0), ties by lowest flat index.
 *
 * @param tau f32 [rows, cols]; unchanged
 * @param scale √c_j, f32 [cols], from `columnScores`
 * @returns u32 [rows, ⌈cols/32⌉], LSB first, the rest of a row's last word zero. The caller frees it.
 * @throws what `Backend.allocate` and `read` throw
 */
export async function keepMask(
  engine: Backend,
  tau: BackendBuffer,
  rows: number,
  cols: number,
  scale: BackendBuffer,
  density: number,
  scope: ScoreScope,
): Promise<BackendBuffer> {
  const words = rows * maskRowWords(cols);
  const mask = engine.allocate(words * 4, 'keep-mask');
  if (density <= 0) return mask;
  const elements = rows * cols;
  const block = scope === 'block' ? Math.min(BLOCK_COLUMNS, cols) : cols;
  const keys = engine.allocate(elements * 4, 'score keys');
  engine.run(columnScore, { params: { rows, cols, block }, buffers: { values: tau, scale, keys } });
  if (scope === 'row') {
    const form = rowForm(engine);
    const params = { rows, cols, keep: keptCount(density, cols) };
    engine.run(trimRows[form], { params, buffers: { keys } });
  } else {
    await trimStretches(engine, stretches(keys, rows, cols, block, density));
  }
  engine.run(packMask, { params: { rows, cols, block }, buffers: { keys, mask } });
  engine.free(keys);
  return mask;
}

/** The searches of keys that compete with each other: whole columns of a width, one after another. */
function stretches(
  keys: BackendBuffer,
  rows: number,
  cols: number,
  block: number,
  density: number,
): (KeySearch & { elements: number })[] {
  return Array.from({ length: Math.ceil(cols / block) }, (_, b) => {
    const elements = Math.min(block, cols - b * block) * rows;
    const search = beginSearch(keptCount(density, elements), elements);
    return { buffer: keys, offset: b * block * rows, elements, search };
  });
}

/** Zeros all keys but the k largest of every stretch. */
async function trimStretches(engine: Backend, all: ReturnType<typeof stretches>): Promise<void> {
  const longest = Math.max(...all.map(({ elements }) => elements));
  const blocks = blockCount(longest);
  const bins = engine.allocate(all.length * HISTOGRAM_WORDS * 4, 'bins');
  const sums = engine.allocate(all.length * blocks * 4, 'equal keys');
  await searchDigits({ work: { engine, bins, sums }, blocks, pass: (visit) => visit(0, longest) }, all);
  const kept = engine.allocate(4, 'kept');
  for (const { buffer, offset, elements, threshold } of all) {
    engine.run(selectThreshold, {
      params: {
        elements,
        slot: offset,
        first_block: 0,
        ...thresholdWords(threshold!),
        out: 0,
      },
      buffers: { values: buffer, kept },
    });
  }
  for (const buffer of [bins, sums, kept]) engine.free(buffer);
}
