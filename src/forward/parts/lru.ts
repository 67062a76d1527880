/** y = W_out (gelu(W_y x) ⊙ lru(conv(W_x x))): the recurrent block of Griffin (De et al. 2024; transformers modeling_recurrent_gemma.py). */
import { GATE_CODE } from '../../backend/kernels/activation';
import { lruScan } from '../../backend/kernels/sequence';
import type { Lru } from '../../models/architecture';
import { convolutionStates, convolve } from './convolution';
import { type PartKind, project, room, type StateShape } from './part';

const scanState = ({ width }: Lru): StateShape => ({ name: 'scan', per: 'sequence', width });

export const lru: PartKind<Lru> = {
  states: (part) => [...convolutionStates(part.conv), scanState(part)],
  width: ({ width }) => 4 * width,
  async run(part, passage, x) {
    const { operations: op, chunk, name, weights, pieces } = passage;
    const { width, block } = part;
    await passage.tap?.('in', part.projections, x);
    const projected = project(passage, part.projections, x, 'projected');
    const convolved = convolve(part.conv, passage, projected, width);
    const y = room(passage, 'scanned', width);
    const elements = chunk.pieces.length * width;
    op.queue.run(
      lruScan,
      {
        params: {
          pieces: chunk.pieces.length,
          width,
          block,
          x_stride: convolved.stride,
          y_stride: y.stride,
        },
        buffers: {
          x: convolved.buffer,
          gates: weights.vector(part.gates),
          biases: weights.vector(part.biases),
          rates: weights.vector(part.rates),
          pieces_at: pieces,
          state: passage.state(scanState(part)),
          y: y.buffer,
        },
        groups: Math.ceil(elements / 64),
        elements,
      },
      chunk.rows * width * block * 2,
    );
    op.gate(projected, y, chunk.rows, width, GATE_CODE.gelu_tanh);
    await passage.tap?.('out', [part.output], y);
    const branch = project(passage, [part.output], y, `${name} branch`);
    await op.queue.breathe();
    return branch;
  },
};
