/**
 * How the inputs of a layer in the model merged so far differ from those in a contributor, as products with the former:
 * E = Σ xᵐ·(x − xᵐ)ᵀ over the tokens, [width, width] f32, not symmetric.
 */
import type { Backend, BackendBuffer } from '../backend/backend';
import type { TappedRows } from '../forward/pass';
import type { GramBlock } from './gram';
import { enqueueCopy, enqueueProduct } from './row-chunks';
import { transpose } from './transpose';

export interface CrossGram {
  readonly tokens: number;
  /** As of the Gram matrix of the same form. */
  readonly blocks: readonly GramBlock[];
  /** Adds xᵐ(x − xᵐ)ᵀ of every row. @param own x, f32 [rows, width] from {@link holdRows}; it is used up */
  add(merged: TappedRows, own: BackendBuffer): void;
  close(): void;
}

/** Zeroed, with the blocks of a Gram matrix of the same width and form. @throws AmalgamError `GpuOutOfMemory` */
export function openCrossGram(engine: Backend, spans: readonly Omit<GramBlock, 'buffer'>[]): CrossGram {
  const blocks = spans.map(({ begin, width }) => ({
    begin,
    width,
    buffer: engine.allocate(width * width * 4, 'cross gram'),
  }));
  let tokens = 0;
  return {
    blocks,
    get tokens() {
      return tokens;
    },
    add(merged, own) {
      const { queue, rows, width, stride } = merged;
      enqueueCopy(queue, { buffer: merged.buffer, stride }, { buffer: own, stride: width }, rows, width, {
        add: true,
        scale: -1,
      });
      const padded = four(rows);
      for (const block of blocks) {
        const transposed = (buffer: BackendBuffer, rowStride: number) => {
          if (padded === rows && block.width === rowStride) return transpose(engine, buffer, rows, rowStride);
          const part = queue.allocate(padded * block.width * 4, 'columns');
          const from = { buffer, stride: rowStride, column: block.begin };
          enqueueCopy(queue, from, { buffer: part, stride: block.width }, rows, block.width);
          const columns = transpose(engine, part, padded, block.width);
          queue.free(part);
          return columns;
        };
        const [x, difference] = [transposed(merged.buffer, stride), transposed(own, width)];
        enqueueProduct(queue, x, difference, block.buffer, block.width, block.width, {
          add: true,
          inputs: padded,
        });
        engine.free(x);
        engine.free(difference);
      }
      tokens += rows;
    },
    close() {
      for (const { buffer } of blocks) engine.free(buffer);
    },
  };
}

/** A copy of rows that a tap sees, [rows, width] without gaps. The caller frees it. */
export function holdRows({ buffer, rows, width, stride, queue }: TappedRows): BackendBuffer {
  const held = queue.allocate(rows * width * 4, 'held rows');
  enqueueCopy(queue, { buffer, stride }, { buffer: held, stride: width }, rows, width);
  return held;
}

/** Products go by fours of tokens; the rows that fill up are zero. */
const four = (rows: number) => Math.ceil(rows / 4) * 4;
