/** The Gram merge: task vectors combined where their models' inputs are active. */
import type { Backend, BackendBuffer } from '../backend/backend';
import { mixColumns } from '../backend/kernels/sums';
import { createQueue, type Queue } from '../forward/queue';
import { sharesOf } from '../merge/tensor/prepared';
import {
  DAMPING,
  enqueueDamped,
  type FactorResult,
  factorDamped,
  inverseTransposed,
  joinResults,
} from './factor';
import { type CrossGram, type Gram, type Hessian, hessianOf } from './gram';
import { chunkRows, enqueueAdd, enqueueCopy, enqueueProduct, rowChunks, transpose } from './row-chunks';

interface Solved {
  /** f32 [rows, cols]. The caller frees it. */
  tau: BackendBuffer;
  factoring: FactorResult;
}

/** Terms of a solution besides the Gram matrices. */
export interface SolveTerms {
  /** Factor of each Gram matrix. Default: 2/n. */
  scales?: readonly number[];
  /** How much each model counts, wᵢ: Hᵢ times it. Default: 1. */
  weights?: readonly number[];
  /** Share of the mean diagonal that is added to each. Default: 0.01. */
  damping?: number;
  /** Inputs in the merged model that are not those in the contributors. */
  disturbed?: {
    /** W₀, f32 [rows, cols]. */
    base: BackendBuffer;
    /** One per model, in the blocks of the Gram matrices, which are then of the inputs in the merged model. */
    crosses: readonly CrossGram[];
    /** The same of the stream that the outputs are added to, which are then to make up for what it lacks. */
    streams?: { crosses: readonly CrossGram[]; share: number };
  };
}

/** Columns of the tensors that are solved together. */
interface Span {
  begin: number;
  width: number;
}

/**
 * τ = (ΣGᵢ)⁻¹ ΣGᵢτ̂ᵢ for every row, Gᵢ = Hᵢ + 0.01·mean(diag Hᵢ)·I, Hᵢ = wᵢ·2/nᵢ·Sᵢ: the minimizer of
 * Σ (τ − τ̂ᵢ) Gᵢ (τ − τ̂ᵢ)ᵀ, RegMean's closed form (Jin et al. 2023) on task vectors. Computed as the mean of the τ̂ᵢ, by their
 * weights, and the deviation from it, so that equal models give their own bits. Where no model had an input, it is the mean.
 *
 * With `disturbed` inputs it is the minimizer of Σ ‖Xᵢᵐ Wᵀ − Xᵢ Wᵢᵀ‖² + rᵢ‖W − Wᵢ‖² over W = W₀ + τ, Xᵢᵐ the inputs in the merged
 * model and Xᵢ those in model i: W Σ (Hᵢ + rᵢI) = Σ Wᵢ (Cᵢ + rᵢI) with Cᵢ = wᵢ·2/n·XᵢᵀXᵢᵐ = Hᵢ + wᵢ·2/n·Eᵢᵀ, which
 * adds Σ wᵢ·2/n·WᵢEᵢᵀ to the right side: nothing where merging has changed nothing. With `streams` hᵢ − hᵢᵐ is added to
 * what is put out, s times: Σ wᵢ·2/n·s·Dᵢ on the right side.
 *
 * @param grams one per model, all of one width and form
 * @param taus f32 [rows, cols] each; unchanged
 * @throws RangeError when forms or numbers do not match, or a Gram matrix has no tokens; what `Backend.read` throws
 */
export async function gramSolve(
  engine: Backend,
  grams: readonly Gram[],
  taus: readonly BackendBuffer[],
  rows: number,
  cols: number,
  terms: SolveTerms = {},
): Promise<Solved> {
  const { scales, weights = taus.map(() => 1), damping: first = DAMPING } = terms;
  const [{ form }] = grams as [Gram];
  const alike = grams.every((g) => g.width === cols && JSON.stringify(g.form) === JSON.stringify(form));
  if (!alike || grams.length !== taus.length) {
    throw new RangeError('Gram matrices and task vectors do not match');
  }
  const queue = createQueue(engine);
  const hessians: Hessian[] = [];
  for (const [i, gram] of grams.entries()) {
    hessians.push(await hessianOf(gram, (scales?.[i] ?? 2 / gram.tokens) * weights[i]!));
  }
  const shares = sharesOf(weights);
  const tau = engine.allocate(rows * cols * 4, 'solved');
  const results: FactorResult[] = [];
  const spans = grams[0]!.blocks.length > 0 ? grams[0]!.blocks : [{ begin: 0, width: cols }];
  for (const [b, span] of spans.entries()) {
    if (form.kind === 'diagonal') {
      results.push({ damping: DAMPING, retries: 0, dead: 0, fellBackToDiagonal: false });
      await mixSpan(queue, hessians, shares, taus, tau, rows, cols, span);
      continue;
    }
    const found = await factorSum(queue, grams, hessians, b, first);
    results.push({ ...found.factoring, dead: 0 });
    if (found.factored) {
      const { damping } = found.factoring;
      await solveSpan(queue, grams, hessians, taus, tau, rows, cols, {
        ...found.factored,
        ...(terms.disturbed && { disturbed: terms.disturbed }),
        shares,
        damping,
        block: b,
        span,
      });
    } else {
      await mixSpan(queue, hessians, shares, taus, tau, rows, cols, span);
    }
  }
  const dead = Array.from({ length: cols }, (_, j) => hessians.every((h) => h.diagonal[j] === 0));
  return { tau, factoring: { ...joinResults(results), dead: dead.filter(Boolean).length } };
}

/** λ · mean(diag H); here dead inputs count as they are, and the damping alone answers for them. */
function shiftOf({ diagonal }: Hessian, damping: number): number {
  return (damping * diagonal.reduce((sum, h) => sum + h, 0)) / diagonal.length;
}

/** N with (ΣG)⁻¹ = N·Nᵀ, and its transpose. */
interface Factored {
  inverse: BackendBuffer;
  transposed: BackendBuffer;
}

/** The factored sum of one block of all Gram matrices; nothing but what came of it when no damping gave a factor. */
async function factorSum(
  queue: Queue,
  grams: readonly Gram[],
  hessians: readonly Hessian[],
  block: number,
  first: number,
) {
  const { width } = grams[0]!.blocks[block]!;
  const factor = queue.allocate(width ** 2 * 4, 'factor');
  const fill = (damping: number) => {
    for (const [i, gram] of grams.entries()) {
      const { scale } = hessians[i]!;
      const shift = shiftOf(hessians[i]!, damping);
      enqueueDamped(queue, gram.blocks[block]!.buffer, factor, width, { scale, shift, add: i > 0 });
    }
    return hessians.reduce((sum, h) => sum + shiftOf(h, damping), 0);
  };
  const result = await factorDamped(queue, factor, width, fill, first);
  const inverse = result.fellBackToDiagonal ? undefined : await inverseTransposed(queue, factor, width);
  queue.free(factor);
  const factored: Factored | undefined = inverse && {
    inverse,
    transposed: transpose(queue.engine, inverse, width, width),
  };
  return { factoring: result, factored };
}

/** mean + (Σ (τ̂ᵢ − mean) Gᵢ + Σ (W₀ + τ̂ᵢ) Eᵢᵀ + Σ s·Dᵢ) · (ΣG)⁻¹, chunk by chunk. Lets go of the factors. */
async function solveSpan(
  queue: Queue,
  grams: readonly Gram[],
  hessians: readonly Hessian[],
  taus: readonly BackendBuffer[],
  out: BackendBuffer,
  rows: number,
  cols: number,
  {
    damping,
    inverse,
    transposed,
    shares,
    block,
    span: { begin, width },
    disturbed,
  }: Factored & { shares: readonly number[]; damping: number; block: number; span: Span } & Pick<
      SolveTerms,
      'disturbed'
    >,
): Promise<void> {
  const chunks = rowChunks(queue, rows, width);
  const take = (label: string) => queue.allocate(chunkRows(chunks) * width * 4, label);
  const [mean, deviation, right, half] = [
    take('mean'),
    take('deviation'),
    take('right side'),
    take('half solved'),
  ];
  for (const { first, rows: count } of chunks) {
    const n = count * width;
    const place = (buffer: BackendBuffer) => ({ buffer, stride: cols, row: first, column: begin });
    const own = (buffer: BackendBuffer) => ({ buffer, stride: width });
    enqueueCopy(queue, place(taus[0]!), own(mean), count, width);
    for (const [i, tau] of taus.entries()) {
      if (i === 0) continue;
      enqueueCopy(queue, place(tau), own(deviation), count, width);
      enqueueCopy(queue, place(taus[0]!), own(deviation), count, width, { add: true, scale: -1 });
      enqueueAdd(queue, deviation, mean, shares[i]!, n);
    }
    queue.engine.clear(right);
    for (const [i, tau] of taus.entries()) {
      enqueueCopy(queue, place(tau), own(deviation), count, width);
      enqueueAdd(queue, mean, deviation, -1, n);
      const { scale } = hessians[i]!;
      const { buffer } = grams[i]!.blocks[block]!;
      enqueueProduct(queue, deviation, buffer, right, count, width, { add: true, scale });
      enqueueAdd(queue, deviation, right, shiftOf(hessians[i]!, damping), n);
      if (disturbed) {
        const { buffer: cross } = disturbed.crosses[i]!.blocks[block]!;
        enqueueCopy(queue, place(disturbed.base), own(deviation), count, width);
        enqueueCopy(queue, place(tau), own(deviation), count, width, { add: true });
        enqueueProduct(queue, deviation, cross, right, count, width, { add: true, scale });
        const { crosses, share } = disturbed.streams ?? {};
        if (crosses && share) {
          const from = { buffer: crosses[i]!.blocks[block]!.buffer, stride: width, row: first };
          enqueueCopy(queue, from, own(right), count, width, { add: true, scale: scale * share });
        }
      }
      await queue.breathe();
    }
    enqueueProduct(queue, right, transposed, half, count, width);
    enqueueProduct(queue, half, inverse, mean, count, width, { add: true });
    enqueueCopy(queue, own(mean), place(out), count, width);
    await queue.breathe();
  }
  for (const buffer of [mean, deviation, right, half, inverse, transposed]) queue.free(buffer);
}

/** The same with diagonal Gᵢ: per column a mean weighted by them. */
async function mixSpan(
  queue: Queue,
  hessians: readonly Hessian[],
  shares: readonly number[],
  taus: readonly BackendBuffer[],
  out: BackendBuffer,
  rows: number,
  cols: number,
  { begin, width }: Span,
): Promise<void> {
  const weights = columnWeights(hessians, shares).map((w) => w.subarray(begin, begin + width));
  const chunks = rowChunks(queue, rows, width);
  const take = (label: string) => queue.allocate(chunkRows(chunks) * width * 4, label);
  const [first, other, mixed] = [take('first'), take('other'), take('mixed')];
  const factor = queue.allocate(width * 4, 'column weights');
  for (const { first: row, rows: count } of chunks) {
    const place = (buffer: BackendBuffer) => ({ buffer, stride: cols, row, column: begin });
    const own = (buffer: BackendBuffer) => ({ buffer, stride: width });
    enqueueCopy(queue, place(taus[0]!), own(first), count, width);
    enqueueCopy(queue, place(taus[0]!), own(mixed), count, width);
    for (const [i, tau] of taus.entries()) {
      if (i === 0) continue;
      queue.write(factor, 0, Float32Array.from(weights[i]!));
      enqueueCopy(queue, place(tau), own(other), count, width);
      queue.run(mixColumns, {
        params: { elements: count * width, cols: width },
        buffers: { x: other, reference: first, factor, y: mixed },
      });
    }
    enqueueCopy(queue, own(mixed), place(out), count, width);
    await queue.breathe();
  }
  for (const buffer of [first, other, mixed, factor]) queue.free(buffer);
}

/** Per model the share of its damped H_jj in their sum; that of its weight where no model had any input. */
function columnWeights(hessians: readonly Hessian[], shares: readonly number[]): Float64Array[] {
  const damped = hessians.map((h) => h.diagonal.map((v) => v + shiftOf(h, DAMPING)));
  const total = damped[0]!.map((_, j) => damped.reduce((sum, d) => sum + d[j]!, 0));
  return damped.map((d, i) => d.map((v, j) => (total[j]! > 0 ? v / total[j]! : shares[i]!)));
}
