/** Compensation: values of the kept elements that make up for those trimmed. */
import type { Backend, BackendBuffer } from '../backend/backend';
import { cgBegin, cgStep, splitByMask } from '../backend/kernels/compensation';
import { rowForm } from '../backend/kernels/rows';
import { maskRowWords } from '../backend/kernels/select';
import { createQueue, type Queue } from '../forward/queue';
import { type Gram, type GramBlock, type Hessian, hessianOf } from './gram';
import { chunkRows, enqueueCopy, enqueueProduct, type RowChunk, rowChunks } from './row-chunks';

/** Steps that every row takes; then those go on whose error still falls (shaders/compensation/cg-step.wgsl), up to the most. */
const CG_STEPS = { least: 4, most: 32 };

/** Inputs of compensating one block of columns. */
interface Work {
  queue: Queue;
  tau: BackendBuffer;
  mask: BackendBuffer;
  out: BackendBuffer;
  rows: number;
  cols: number;
}

/**
 * τ̂ on the kept entries with a small (τ̂ − τ) Hd (τ̂ − τ)ᵀ per row, Hd = H + 0.01·mean(diag H)·I: the least within 0.5 %, by
 * masked conjugate gradients over all rows at once. Blocks of a Gram matrix are compensated each by itself; a diagonal one
 * has nothing to make up with: there τ̂ is the masked τ.
 *
 * @param tau f32 [rows, cols]; unchanged
 * @param mask from `keepMask`
 * @returns τ̂, f32 [rows, cols], 0 where the mask has no bit. The caller frees it.
 * @throws RangeError when the Gram matrix has no tokens; what `Backend.read` throws
 */
export async function compensate(
  engine: Backend,
  tau: BackendBuffer,
  mask: BackendBuffer,
  rows: number,
  cols: number,
  gram: Gram,
): Promise<BackendBuffer> {
  const queue = createQueue(engine);
  const hessian = await hessianOf(gram);
  const work: Work = { queue, tau, mask, out: engine.allocate(rows * cols * 4, 'compensated'), rows, cols };
  for (const block of gram.blocks) await conjugateGradients(work, block, hessian);
  if (gram.blocks.length === 0) await maskOnly(work, { begin: 0, width: cols });
  return work.out;
}

/** The params of the kernels on masked rows for a chunk of a block. */
function maskedParams({ cols }: Work, { begin, width }: Span, { first, rows }: RowChunk) {
  return {
    rows,
    width4: width / 4,
    mask_row: first,
    mask_words: maskRowWords(cols),
    mask_begin: begin,
    may_rest: 0,
    shift: 0,
  };
}

type Span = Pick<GramBlock, 'begin' | 'width'>;

function enqueueSplit(
  work: Work,
  span: Span,
  chunk: RowChunk,
  x: BackendBuffer,
  dropped: BackendBuffer,
): void {
  work.queue.run(splitByMask, {
    params: maskedParams(work, span, chunk),
    buffers: { mask: work.mask, x, dropped },
  });
}

/** Calls `visit` with every chunk's τ in x, and stores what it leaves in the buffer it returns. */
async function eachChunk(
  work: Work,
  span: Span,
  labels: readonly string[],
  visit: (chunk: RowChunk, x: BackendBuffer, others: BackendBuffer[]) => Promise<BackendBuffer>,
): Promise<void> {
  const { queue, tau, out, rows, cols } = work;
  const chunks = rowChunks(queue, rows, span.width);
  const bytes = chunkRows(chunks) * span.width * 4;
  const x = queue.allocate(bytes, 'kept entries');
  const others = labels.map((label) => queue.allocate(bytes, label));
  for (const chunk of chunks) {
    const place = { stride: cols, row: chunk.first, column: span.begin };
    enqueueCopy(queue, { buffer: tau, ...place }, { buffer: x, stride: span.width }, chunk.rows, span.width);
    const done = await visit(chunk, x, others);
    enqueueCopy(
      queue,
      { buffer: done, stride: span.width },
      { buffer: out, ...place },
      chunk.rows,
      span.width,
    );
    await queue.breathe();
  }
  for (const buffer of [x, ...others]) queue.free(buffer);
}

function maskOnly(work: Work, span: Span): Promise<void> {
  return eachChunk(work, span, ['dropped entries'], async (chunk, x, [dropped]) => {
    enqueueSplit(work, span, chunk, x, dropped!);
    return x;
  });
}

/** Solves H_KK x_K = (H τ)_K for every row's kept set K, starting at x = τ_K. */
async function conjugateGradients(work: Work, block: GramBlock, hessian: Hessian): Promise<void> {
  const { queue, mask, rows } = work;
  const { begin, width, buffer: h } = block;
  const { scale } = hessian;
  const shift = hessian.shift();
  const inverse = queue.allocate(width * 4, 'inverse diagonal');
  const diagonal = hessian.diagonal.subarray(begin, begin + width);
  queue.write(
    inverse,
    0,
    Float32Array.from(diagonal, (v) => 1 / ((v === 0 ? 1 : v) + shift)),
  );
  const rho = queue.allocate(rows * 8, 'squared residuals');
  await eachChunk(work, block, ['direction', 'product', 'residual'], async (chunk, x, [p, q, r]) => {
    const params = { ...maskedParams(work, block, chunk), shift };
    const form = rowForm(queue.engine);
    enqueueSplit(work, block, chunk, x, p!);
    // the damping adds nothing here: trimmed elements have no entry that is kept
    enqueueProduct(queue, p!, h, q!, chunk.rows, width, { scale });
    queue.run(cgBegin[form], { params, buffers: { mask, inverse, q: q!, p: p!, r: r!, rho } });
    for (let step = 1; step <= CG_STEPS.most; step++) {
      const mayRest = +(step >= CG_STEPS.least);
      enqueueProduct(queue, p!, h, q!, chunk.rows, width, { scale });
      queue.run(cgStep[form], {
        params: { ...params, may_rest: mayRest },
        buffers: { mask, inverse, q: q!, p: p!, r: r!, x, rho },
      });
      if (mayRest === 1 && (await allRest(queue, rho, chunk.rows))) break;
      await queue.breathe();
    }
    return x;
  });
  queue.free(inverse);
  queue.free(rho);
}

async function allRest(queue: Queue, rho: BackendBuffer, rows: number): Promise<boolean> {
  const [bytes] = await queue.read([{ buffer: rho, byteLength: rows * 8 }]);
  return new Float32Array(bytes!.buffer).every((v, i) => i % 2 === 1 || v === 0);
}
