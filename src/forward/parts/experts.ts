/**
 * y = Σ share_e(x) · expert_e(x) over the experts a router chooses. The scores come to the host, which chooses (routing.ts); each
 * expert then runs on the rows that took it.
 */
import { GATE_CODE } from '../../backend/kernels/activation';
import { gatherRows, scatterRows } from '../../backend/kernels/rows';
import type { Experts } from '../../models/architecture';
import { activatedRows } from './mlp';
import { type PartKind, project, room } from './part';
import { route } from './routing';

export const experts: PartKind<Experts> = {
  states: () => [],
  width: ({ experts: all, router }) =>
    router.scores.outputs + all[0]!.projections.reduce((sum, p) => sum + p.outputs, 0) + 4 * all[0]!.inner,
  async run({ router, experts: all }, passage, x) {
    const { operations: op, workspace, chunk, name, hidden, weights } = passage;
    const { queue } = op;
    const scored = router.norm ? room(passage, 'scored', hidden) : x;
    if (router.norm) op.norm(weights.norm(router.norm), passage.entered, scored, chunk.rows);
    const scores = project(passage, [router.scores], scored, 'scores');
    const [bytes] = await queue.read([{ buffer: scores.buffer, byteLength: chunk.rows * scores.stride * 4 }]);
    const bias = router.bias && weights.values(router.bias);
    const taken = route(router, new Float32Array(bytes!.buffer), chunk.rows, scores.stride, bias);
    const branch = room(passage, `${name} branch`, hidden);
    queue.engine.clear(branch.buffer);
    const own = router.factors && weights.values(router.factors);
    for (const [e, { rows, shares }] of taken.entries()) {
      const count = rows.length;
      if (count === 0) continue;
      const picks = workspace.take('expert rows', count * 4);
      const factors = workspace.take('expert shares', count * 4);
      const inputs = { buffer: workspace.take('expert inputs', count * hidden * 4), stride: hidden };
      queue.write(picks, 0, Uint32Array.from(rows));
      queue.write(
        factors,
        0,
        Float32Array.from(shares, (share) => share * (own?.[e] ?? 1)),
      );
      queue.run(gatherRows, {
        params: { rows: count, width: hidden },
        buffers: { x: x.buffer, picks, y: inputs.buffer },
        groups: count,
        elements: count,
      });
      if (router.onInput) {
        op.gate({ buffer: factors, stride: 1 }, inputs, count, hidden, GATE_CODE.product, {
          broadcast: true,
        });
        queue.write(factors, 0, new Float32Array(count).fill(1));
      }
      const activated = await activatedRows(all[e]!, passage, inputs, count);
      const made = project(passage, [all[e]!.output], activated, 'expert outputs', count);
      queue.run(scatterRows, {
        params: { rows: count, width: hidden, x_stride: made.stride, y_stride: branch.stride },
        buffers: { x: made.buffer, picks, factors, y: branch.buffer },
        groups: count,
        elements: count,
      });
      await queue.breathe();
    }
    return branch;
  },
};
