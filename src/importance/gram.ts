/**
 * The Gram matrix of a linear layer's input, S = Σ x xᵀ over the tokens that passed, on the device. All of `importance`
 * is computed from it.
 */
import type { ComputeEngine, EngineBuffer } from '../compute/engine';
import type { TappedRows } from '../forward/sweep';

/** How much of S is kept: all of it, square blocks along its diagonal (the last may be narrower), or the diagonal. */
export type GramForm = { kind: 'full' } | { kind: 'blocks'; width: number } | { kind: 'diagonal' };

/** A square block of S on the device: the products of columns begin … begin + width, both triangles, f32 row-major. */
export interface GramBlock {
  begin: number;
  width: number;
  buffer: EngineBuffer;
}

export interface Gram {
  readonly engine: ComputeEngine;
  /** Columns of the input; a multiple of 4, as the forward pass wants it. */
  readonly width: number;
  readonly form: GramForm;
  /** Rows added so far. */
  readonly tokens: number;
  /** One block for `full`, several for `blocks`, none for `diagonal`. */
  readonly blocks: readonly GramBlock[];
  /** Adds x xᵀ of every row; enqueues on `rows.queue`. @throws RangeError when the rows are not `width` wide */
  add(rows: TappedRows): void;
  /** The diagonal Σ x_j², [width]. @throws what `ComputeEngine.read` throws */
  diagonal(): Promise<Float32Array>;
  /** full: width · width, symmetric; blocks: one such square after the other; diagonal: [width]. */
  read(): Promise<Float32Array>;
  close(): void;
}

/** A Gram matrix of zeros. @throws AmalgamError `GpuOutOfMemory` */
export function openGram(engine: ComputeEngine, width: number, form: GramForm): Gram {
  throw new Error(`not yet: ${engine.kind} ${width} ${form.kind}`);
}

/** Bytes a Gram matrix takes on the device. */
export function gramBytes(width: number, form: GramForm): number {
  if (form.kind === 'diagonal') return width * 4;
  return blockWidths(width, form).reduce((sum, w) => sum + w * w * 4, 0);
}

/**
 * The form that fits: `full` where one buffer holds the matrix, else the fewest equal blocks (2, 4, 8 …) that each fit.
 * Blocks leave out the products between them; whoever asks for them says so.
 */
export function formFor(
  engine: Pick<ComputeEngine, 'maxBufferBytes'>,
  width: number,
  wanted: 'full' | 'diagonal',
): GramForm {
  if (wanted === 'diagonal') return { kind: 'diagonal' };
  for (let blocks = 1; ; blocks *= 2) {
    const each = Math.ceil(width / blocks / 4) * 4;
    if (each * each * 4 > engine.maxBufferBytes) continue;
    return blocks === 1 ? { kind: 'full' } : { kind: 'blocks', width: each };
  }
}

/** Widths of the square blocks of a form, in order. */
function blockWidths(width: number, form: Exclude<GramForm, { kind: 'diagonal' }>): number[] {
  const each = form.kind === 'full' ? width : form.width;
  return Array.from({ length: Math.ceil(width / each) }, (_, b) => Math.min(each, width - b * each));
}
