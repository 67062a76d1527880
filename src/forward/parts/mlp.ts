/** y = W_out · (f(W_gate x) ⊙ W_up x), or W_out · f(W_up x); times σ(w · x) where it has a factor. */
import { GATE_CODE } from '../../backend/kernels/activation';
import { sparseRows } from '../../backend/kernels/rows';
import { normalQuantile } from '../../backend/special';
import type { Mlp } from '../../models/architecture';
import type { RowBuffer } from '../operations';
import { narrowRows, type PartKind, type Passage, project, projectOut } from './part';

export const mlp: PartKind<Mlp> = {
  states: () => [],
  readsByLayers: () => true,
  width: ({ projections, inner }) => inner + projections.reduce((sum, p) => sum + p.outputs, 0),
  async run(part, passage, x) {
    await passage.tap?.('in', part.projections, x);
    const activated = await activatedRows(part, passage, x, passage.chunk.rows);
    await passage.tap?.('out', [part.output], activated);
    const { onto: _, ...apart } = passage;
    const branch = await projectOut(part.factor ? apart : passage, part.output, activated);
    if (part.factor) await weigh(part, passage, x, branch);
    return branch;
  },
};

/** Input of the last linear layer: the activated (and gated) rows. */
export async function activatedRows(
  part: Mlp,
  passage: Passage,
  x: RowBuffer,
  rows: number,
): Promise<RowBuffer> {
  const { operations: op, workspace, weights } = passage;
  const stride = Math.ceil(part.inner / 4) * 4;
  const activated = { buffer: workspace.take('activated', rows * stride * 4), stride };
  const layers = part.projections.map((linear) => weights.linear(linear));
  const isPlain = part.gated && part.sparse === undefined;
  const narrow = narrowRows(workspace, layers, rows);
  if (isPlain && (await op.gatedLinear(layers, part.activation, x, activated, rows, narrow)))
    return activated;
  const inner = await project(passage, part.projections, x, 'inner', rows);
  if (part.sparse !== undefined) {
    op.queue.run(sparseRows, {
      params: { rows, width: part.inner, stride: inner.stride, deviations: normalQuantile(part.sparse) },
      buffers: { x: inner.buffer },
    });
  }
  op.activate(part, inner, activated, rows, xieluOf(part, passage));
  return activated;
}

/** αp, αn, β and ε of an xIELU as it uses them: softplus(αp), β + softplus(αn), β, ε. */
function xieluOf({ xielu }: Mlp, { weights }: Passage): number[] | undefined {
  if (!xielu) return undefined;
  const [p = 0, n = 0, beta = 0, epsilon = 0] = xielu.map((vector) => weights.values(vector)[0]!);
  const softplus = (v: number) => Math.log1p(Math.exp(-Math.abs(v))) + Math.max(v, 0);
  return [softplus(p), beta + softplus(n), beta, epsilon];
}

async function weigh({ factor }: Mlp, passage: Passage, x: RowBuffer, y: RowBuffer): Promise<void> {
  const { operations: op, chunk, hidden } = passage;
  const share = await project(passage, [factor!], x, 'factor');
  op.gate(share, y, chunk.rows, hidden, GATE_CODE.sigmoid, { broadcast: true });
}
