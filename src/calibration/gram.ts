/**
 * The Gram matrix of a linear layer's input, S = Σ x xᵀ over the tokens that passed, on the device. All of `importance`
 * is computed from it.
 */

import type { Backend, BackendBuffer } from '../backend/backend';
import {
  GRAM_ROWS,
  inputGram,
  inputGramForm,
  inputSquares,
  matrixDiagonal,
} from '../backend/kernels/products';
import type { TappedRows } from '../forward/pass';
import type { Queue } from '../forward/queue';
import { DAMPING } from './factor';
import { enqueueCopy, enqueueProduct, transpose } from './row-chunks';

/** Layout of a Gram matrix: full, square blocks along its diagonal (the last may be narrower), or the diagonal. */
export type GramForm = { kind: 'full' } | { kind: 'blocks'; width: number } | { kind: 'diagonal' };

/** A square block of S on the device: the products of columns begin … begin + width, both triangles, f32 row-major. */
export interface GramBlock {
  begin: number;
  width: number;
  buffer: BackendBuffer;
}

export interface Gram {
  /** Columns of the input; a multiple of 4, as the forward pass wants it. */
  readonly width: number;
  readonly form: GramForm;
  /** Rows added so far. */
  readonly tokens: number;
  /** One block for `full`, several for `blocks`, none for `diagonal`. */
  readonly blocks: readonly GramBlock[];
  /** Adds x xᵀ of every row; enqueues on `rows.queue`. @throws RangeError when the rows are not `width` wide */
  add(rows: TappedRows): void;
  /** The diagonal Σ x_j², [width]. @throws what `Backend.read` throws */
  diagonal(): Promise<Float32Array>;
  /** full: width · width, symmetric; blocks: one such square after the other; diagonal: [width]. */
  read(): Promise<Float32Array>;
  close(): void;
}

/**
 * A Gram matrix of zeros.
 * @throws RangeError when the width is no multiple of 4; AmalgamError `GpuOutOfMemory`
 */
export function openGram(engine: Backend, width: number, form: GramForm): Gram {
  if (width % 4 !== 0)
    throw new RangeError(`a Gram matrix needs a width that is a multiple of 4, not ${width}`);
  const squares = form.kind === 'diagonal' ? engine.allocate(width * 4, 'input squares') : undefined;
  const blocks: GramBlock[] = [];
  if (form.kind !== 'diagonal') {
    let begin = 0;
    for (const w of blockWidths(width, form)) {
      blocks.push({ begin, width: w, buffer: engine.allocate(w * w * 4, 'gram') });
      begin += w;
    }
  }
  let tokens = 0;
  const diagonal = async () => {
    const out = squares ?? engine.allocate(width * 4, 'gram diagonal');
    for (const { begin, width: w, buffer } of blocks) {
      const params = { width: w, out: begin };
      engine.run(matrixDiagonal, { params, buffers: { m: buffer, diagonal: out } });
    }
    const [bytes] = await engine.read([{ buffer: out, byteLength: width * 4 }]);
    if (out !== squares) engine.free(out);
    return new Float32Array(bytes!.buffer);
  };
  return {
    width,
    form,
    blocks,
    get tokens() {
      return tokens;
    },
    add(rows) {
      if (rows.width !== width) throw new RangeError(`rows of ${rows.width} for a Gram matrix of ${width}`);
      const step = squares ? GRAM_ROWS : inputGramForm(rows.queue.engine).rows;
      for (let first = 0; first < rows.rows; first += step) {
        const count = Math.min(step, rows.rows - first);
        if (squares) addSquares(rows, first, count, squares);
        for (const block of blocks) addProducts(rows, first, count, block);
      }
      tokens += rows.rows;
    },
    diagonal,
    async read() {
      if (squares) return diagonal();
      const bytes = await engine.read(
        blocks.map((b) => ({ buffer: b.buffer, byteLength: b.width ** 2 * 4 })),
      );
      const out = new Float32Array(blocks.reduce((sum, b) => sum + b.width ** 2, 0));
      let at = 0;
      for (const b of bytes) {
        out.set(new Float32Array(b.buffer), at);
        at += b.length / 4;
      }
      return out;
    },
    close() {
      if (squares) engine.free(squares);
      for (const { buffer } of blocks) engine.free(buffer);
    },
  };
}

function addSquares(
  { buffer, stride, width, queue }: TappedRows,
  first: number,
  rows: number,
  squares: BackendBuffer,
) {
  const width4 = width / 4;
  queue.run(inputSquares, {
    params: { rows, first, stride4: stride / 4, width4 },
    buffers: { x: buffer, squares },
  });
}

/** The tiles of one block, in as many dispatches as keep each short. */
function addProducts({ buffer, stride, queue }: TappedRows, first: number, rows: number, block: GramBlock) {
  const { form, side4, perGroup } = inputGramForm(queue.engine);
  const width4 = block.width / 4;
  const side = Math.ceil(width4 / side4);
  const tiles = (side * (side + 1)) / 2;
  const tileWork = rows * (4 * side4) ** 2;
  const most = Math.max(1, Math.floor(queue.dispatchWork / tileWork / perGroup)) * perGroup;
  for (let firstTile = 0; firstTile < tiles; firstTile += most) {
    const count = Math.min(most, tiles - firstTile);
    queue.run(
      inputGram[form],
      {
        params: { rows, first, stride4: stride / 4, begin4: block.begin / 4, width4, first_tile: firstTile },
        buffers: { x: buffer, s: block.buffer },
        groups: Math.ceil(count / perGroup),
        elements: count,
      },
      count * tileWork,
    );
  }
}

/** Bytes a Gram matrix takes on the device. */
export function gramBytes(width: number, form: GramForm): number {
  if (form.kind === 'diagonal') return width * 4;
  return blockWidths(width, form).reduce((sum, w) => sum + w * w * 4, 0);
}

/** Most bytes of one block: a factor and an inverse want as much again each, and every model of a merge has its own. */
const BLOCK_BYTES = 512 << 20;

/**
 * The form that fits: `full` where one buffer of at most 512 MiB (width 11 585) holds the matrix, else the fewest equal blocks
 * (2, 4, 8 …) that each fit. Blocks leave out the products between them; callers ask for them explicitly.
 */
export function formFor(
  engine: Pick<Backend, 'maxBufferBytes'>,
  width: number,
  wanted: 'full' | 'diagonal',
): GramForm {
  if (wanted === 'diagonal') return { kind: 'diagonal' };
  const most = Math.min(engine.maxBufferBytes, BLOCK_BYTES);
  for (let blocks = 1; ; blocks *= 2) {
    const each = Math.ceil(width / blocks / 4) * 4;
    if (each * each * 4 > most) continue;
    return blocks === 1 ? { kind: 'full' } : { kind: 'blocks', width: each };
  }
}

/** Widths of the square blocks of a form, in order. */
function blockWidths(width: number, form: Exclude<GramForm, { kind: 'diagonal' }>): number[] {
  const each = form.kind === 'full' ? width : form.width;
  return Array.from({ length: Math.ceil(width / each) }, (_, b) => Math.min(each, width - b * each));
}

// H = 2/n · S of a Gram matrix: its properties by the diagonal.

export interface Hessian {
  /** Factor of S, usually 2/n. */
  scale: number;
  /** H_jj as measured: 0 for dead inputs. */
  diagonal: Float64Array;
  /** Inputs with H_jj = 0. */
  dead: number;
  damping: number;
  /** λ · mean(diag H), the mean taken with H_jj = 1 for dead inputs (Frantar and Alistarh 2023, `sparsegpt.py`). */
  shift(damping?: number): number;
}

/** @throws RangeError when no token was added; what `Backend.read` throws */
export async function hessianOf(gram: Gram, scale = 2 / gram.tokens): Promise<Hessian> {
  if (gram.tokens === 0) throw new RangeError('a Gram matrix without tokens');
  const diagonal = Float64Array.from(await gram.diagonal(), (s) => s * scale);
  const dead = diagonal.reduce((count, h) => count + +(h === 0), 0);
  const mean = (diagonal.reduce((sum, h) => sum + h, 0) + dead) / gram.width;
  return { scale, diagonal, dead, damping: DAMPING, shift: (damping = DAMPING) => damping * mean };
}

// How rows in the model merged so far differ from those in a contributor, as products with the inputs of a layer in the former, f32,
// not symmetric: of these inputs themselves, E = Σ xᵐ·(x − xᵐ)ᵀ over the tokens, [width, width], and of the stream that the
// layer's outputs are added to, D = Σ (h − hᵐ)·xᵐᵀ, [hidden, width].

export interface CrossGram {
  /** As of the Gram matrix of the same form; of the stream in all of its rows. */
  readonly blocks: readonly GramBlock[];
  /**
   * Adds a product of every row.
   * @param merged xᵐ @param differing xᵐ again, or hᵐ
   * @param own x or h, f32 without gaps, from {@link holdRows}; it is used up
   */
  add(merged: TappedRows, differing: TappedRows, own: BackendBuffer): void;
  close(): void;
}

/**
 * Zeroed, with the blocks of a Gram matrix of the same width and form.
 * @param hidden width of the stream, where that is what differs
 * @throws AmalgamError `GpuOutOfMemory`
 */
export function openCrossGram(
  engine: Backend,
  spans: readonly Omit<GramBlock, 'buffer'>[],
  hidden?: number,
): CrossGram {
  const blocks = spans.map(({ begin, width }) => ({
    begin,
    width,
    buffer: engine.allocate((hidden ?? width) * width * 4, 'cross gram'),
  }));
  return {
    blocks,
    add(merged, differing, own) {
      const { queue, rows } = merged;
      const { buffer, stride, width: all } = differing;
      enqueueCopy(queue, { buffer, stride }, { buffer: own, stride: all }, rows, all, {
        add: true,
        scale: -1,
      });
      const difference = { buffer: own, stride: all };
      for (const { begin, width, buffer: product } of blocks) {
        const [left, right] = hidden
          ? [columnsOf(queue, difference, rows, 0, all), columnsOf(queue, merged, rows, begin, width)]
          : [columnsOf(queue, merged, rows, begin, width), columnsOf(queue, difference, rows, begin, width)];
        const form = { add: true, inputs: four(rows) };
        enqueueProduct(queue, left, right, product, hidden ?? width, width, form);
        engine.free(left);
        engine.free(right);
      }
    },
    close() {
      for (const { buffer } of blocks) engine.free(buffer);
    },
  };
}

/** Some columns of rows, transposed: [width, tokens], the tokens filled up with zeros to a multiple of four. */
function columnsOf(
  queue: Queue,
  from: Pick<TappedRows, 'buffer' | 'stride'>,
  rows: number,
  begin: number,
  width: number,
): BackendBuffer {
  const padded = four(rows);
  if (padded === rows && width === from.stride) return transpose(queue.engine, from.buffer, rows, width);
  const part = queue.allocate(padded * width * 4, 'columns');
  enqueueCopy(queue, { ...from, column: begin }, { buffer: part, stride: width }, rows, width);
  const columns = transpose(queue.engine, part, padded, width);
  queue.free(part);
  return columns;
}

/** A copy of rows that a tap sees, [rows, width] without gaps. The caller frees it. */
export function holdRows({ buffer, rows, width, stride, queue }: TappedRows): BackendBuffer {
  const held = queue.allocate(rows * width * 4, 'held rows');
  enqueueCopy(queue, { buffer, stride }, { buffer: held, stride: width }, rows, width);
  return held;
}

/** Products go by fours of tokens; the rows that fill up are zero. */
const four = (rows: number) => Math.ceil(rows / 4) * 4;
