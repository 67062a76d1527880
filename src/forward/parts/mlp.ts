/** y = W_out · (f(W_gate x) ⊙ W_up x), or W_out · f(W_up x); times σ(w · x) where it has a factor. */
import { GATE_CODE } from '../../backend/kernels/gate-rows';
import type { Mlp } from '../../models/architecture';
import type { RowBuffer } from '../operations';
import { type PartKind, type Passage, project, room } from './part';

export const mlp: PartKind<Mlp> = {
  states: () => [],
  width: ({ projections, inner }) => inner + projections.reduce((sum, p) => sum + p.outputs, 0),
  async run(part, passage, x) {
    const { operations: op, chunk, name } = passage;
    await passage.tap?.('in', part.projections, x);
    const inner = project(passage, part.projections, x, 'inner');
    await op.queue.breathe();
    const activated = room(passage, 'activated', part.inner);
    op.activate(part, inner, activated, chunk.rows, xieluOf(part, passage));
    await passage.tap?.('out', [part.output], activated);
    const branch = project(passage, [part.output], activated, `${name} branch`);
    if (part.factor) weigh(part, passage, x, branch);
    await op.queue.breathe();
    return branch;
  },
};

/** αp, αn, β and ε of an xIELU as it uses them: softplus(αp), β + softplus(αn), β, ε. */
export function xieluOf({ xielu }: Mlp, { weights }: Pick<Passage, 'weights'>): number[] | undefined {
  if (!xielu) return undefined;
  const [p, n, beta, epsilon] = xielu.map((vector) => weights.values(vector)[0]!) as [
    number,
    number,
    number,
    number,
  ];
  const softplus = (v: number) => Math.log1p(Math.exp(-Math.abs(v))) + Math.max(v, 0);
  return [softplus(p), beta + softplus(n), beta, epsilon];
}

function weigh({ factor }: Mlp, passage: Passage, x: RowBuffer, y: RowBuffer): void {
  const { operations: op, chunk, hidden } = passage;
  const share = project(passage, [factor!], x, 'factor');
  op.gate(share, y, chunk.rows, hidden, GATE_CODE.sigmoid, { broadcast: true });
}
