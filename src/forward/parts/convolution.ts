/** Convolutions along sequences: y[r] = f(b + Σ_k w_k x[r − taps + 1 + k]), the last rows stored for the next chunk. */
import { causalConv, keepRows } from '../../backend/kernels/sequence';
import type { Convolution } from '../../models/architecture';
import type { RowBuffer } from '../operations';
import { type Passage, room, type StateShape } from './part';

/** State stored per sequence: the last taps − 1 inputs of every channel. */
export function convolutionStates({ taps, channels }: Convolution): StateShape[] {
  return taps > 1 ? [{ name: 'conv', per: 'sequence', width: (taps - 1) * channels }] : [];
}

/** Columns of x from `begin` on, convolved: [rows, channels] in 'convolved'. */
export function convolve(conv: Convolution, passage: Passage, x: RowBuffer, begin: number): RowBuffer {
  const { operations: op, chunk, weights, pieces } = passage;
  const { channels, taps } = conv;
  const y = room(passage, 'convolved', channels);
  const count = chunk.pieces.length;
  const [state] = convolutionStates(conv);
  const before = state ? passage.state(state) : op.nothing;
  const from = { x_stride: x.stride, x_begin: begin };
  op.queue.run(causalConv, {
    params: {
      pieces: count,
      channels,
      taps,
      biased: conv.bias ? 1 : 0,
      silu: conv.silu ? 1 : 0,
      ...from,
      y_stride: y.stride,
    },
    buffers: {
      x: x.buffer,
      pieces_at: pieces,
      before,
      weight: weights.vector(conv.weight),
      bias: conv.bias ? weights.vector(conv.bias) : op.nothing,
      y: y.buffer,
    },
  });
  if (state) {
    op.queue.run(keepRows, {
      params: { pieces: count, channels, kept: taps - 1, ...from },
      buffers: { x: x.buffer, pieces_at: pieces, before },
    });
  }
  return y;
}
