/** y = W_out (C ⊙ conv(B ⊙ x)) with (B, C, x) = W_in · input: the short convolution of LFM2 (transformers modeling_lfm2.py). */
import { GATE_CODE } from '../../backend/kernels/activation';
import type { ShortConv } from '../../models/architecture';
import { placeRows } from './attention';
import { convolutionStates, convolve } from './convolution';
import { type PartKind, project, room } from './part';

export const shortConv: PartKind<ShortConv> = {
  states: ({ conv }) => convolutionStates(conv),
  width: ({ conv }) => 5 * conv.channels,
  async run(part, passage, x) {
    const { operations: op, chunk, name } = passage;
    const { channels } = part.conv;
    await passage.tap?.('in', part.projections, x);
    const projected = project(passage, part.projections, x, 'projected');
    const gated = room(passage, 'gated', channels);
    const columns = (begin: number) => ({ begin, stride: channels });
    placeRows(passage, {
      from: projected,
      layout: columns(2 * channels),
      heads: 1,
      dims: channels,
      to: gated.buffer,
      width: channels,
      keepRows: true,
    });
    op.gate(projected, gated, chunk.rows, channels, GATE_CODE.product);
    const convolved = convolve(part.conv, passage, gated, 0);
    op.gate(projected, convolved, chunk.rows, channels, GATE_CODE.product, { begin: channels });
    await passage.tap?.('out', [part.output], convolved);
    const branch = project(passage, [part.output], convolved, `${name} branch`);
    await op.queue.breathe();
    return branch;
  },
};
