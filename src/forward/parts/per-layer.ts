/** y = W_out (f(W_gate x) ⊙ e / √2), e = the layer's share of the token's embedding (Gemma 3n, Gemma 4). */
import { GATE_CODE } from '../../backend/kernels/activation';
import type { PerLayer } from '../../models/architecture';
import { type PartKind, project, room } from './part';

export const perLayer: PartKind<PerLayer> = {
  states: () => [],
  width: ({ output }) => 2 * output.inputs,
  async run(part, passage, x) {
    const { operations: op, chunk, name } = passage;
    const width = part.output.inputs;
    await passage.tap?.('in', part.projections, x);
    const gate = project(passage, part.projections, x, 'inner');
    const activated = room(passage, 'activated', width);
    op.activate({ inner: width, gated: false, activation: part.activation }, gate, activated, chunk.rows);
    const shares = passage.perLayer!;
    op.gate(shares, activated, chunk.rows, width, GATE_CODE.product, { begin: part.layer * width });
    await passage.tap?.('out', [part.output], activated);
    return project(passage, [part.output], activated, `${name} branch`);
  },
};
