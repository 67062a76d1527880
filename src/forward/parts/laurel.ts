/** y = x + norm(W_right W_left x): Gemma 3n's learned augmented residual layer (transformers modeling_gemma3n.py). */
import type { Laurel } from '../../models/architecture';
import { type PartKind, project, room } from './part';

export const laurel: PartKind<Laurel> = {
  states: () => [],
  width: ({ output }) => output.inputs + 2 * output.outputs,
  async run(part, passage, x) {
    const { operations: op, chunk, name, weights, hidden } = passage;
    await passage.tap?.('in', part.projections, x);
    const narrow = project(passage, part.projections, x, 'inner');
    await passage.tap?.('out', [part.output], narrow);
    const made = project(passage, [part.output], narrow, 'laurel');
    const branch = room(passage, `${name} branch`, hidden);
    op.norm(weights.norm(part.norm), made, branch, chunk.rows);
    op.add(x.buffer, branch.buffer, 1, chunk.rows * hidden);
    return branch;
  },
};
