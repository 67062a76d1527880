/**
 * y = W · mlp(norm(attention(norm([x, e])))), e = what entered the first block: the transformer that layers of Zamba 2 have in
 * common, each with a low-rank update of its own (Glorioso et al. 2024, arXiv 2411.15242; transformers modeling_zamba2.py).
 */
import type { Shared } from '../../models/architecture';
import { attention, placeRows } from './attention';
import { mlp } from './mlp';
import { type PartKind, project, room } from './part';

export const shared: PartKind<Shared> = {
  states: (part) => attention.states(part.attention),
  width: (part) =>
    2 * part.norm.width + part.output.outputs + attention.width(part.attention) + mlp.width(part.mlp),
  async run(part, passage, x) {
    const { operations: op, chunk, weights, hidden, embedded } = passage;
    const both = room(passage, 'stream and embedding', 2 * hidden);
    for (const [i, from] of [x, embedded!].entries()) {
      placeRows(passage, {
        from,
        layout: { begin: 0, stride: hidden },
        heads: 1,
        dims: hidden,
        to: both.buffer,
        width: hidden,
        begin: i * hidden,
        stride: both.stride,
        keepRows: true,
      });
    }
    const entered = room(passage, 'shared normed', 2 * hidden);
    op.norm(weights.norm(part.norm), both, entered, chunk.rows);
    const inner = { ...passage, name: 'shared' };
    const attended = await attention.run(part.attention, inner, entered);
    const thought = room(passage, 'shared mlp normed', hidden);
    op.norm(weights.norm(part.mlpIn), attended, thought, chunk.rows);
    const made = await mlp.run(part.mlp, inner, thought);
    return project(passage, [part.output], made, 'ahead');
  },
};
