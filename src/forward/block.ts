/** One block over one chunk of rows: its steps, one after the other, each joining its branches to the residual stream. */
import { capLogits } from '../backend/kernels/cap-logits';
import type { Block, Norm } from '../models/architecture';
import type { LinearSite } from '../models/claim';
import type { DeviceLinear } from './device-weights';
import type { RowBuffer } from './operations';
import { kindOf } from './parts/kinds';
import type { Loaded, Passage } from './parts/part';

/** A block's weights on the device. */
export interface BlockWeights extends Loaded {
  block: Block;
  byteLength: number;
  close(): void;
}

/** What a chunk meets in a block, besides the weights. */
export interface BlockPassage extends Omit<Passage, 'weights' | 'name' | 'tap'> {
  /** Name of the chunk's stream in the workspace. */
  stream: string;
  onSite?(site: LinearSite, weights: readonly DeviceLinear[], rows: RowBuffer): void | Promise<void>;
}

/** Runs the block; the stream of the chunk is replaced by what leaves it. */
export async function runBlock(weights: BlockWeights, passage: BlockPassage): Promise<void> {
  const { operations: op, workspace, hidden, chunk, stream } = passage;
  const { rows } = chunk;
  const elements = rows * hidden;
  const room = (name: string): RowBuffer => ({
    buffer: workspace.take(name, elements * 4),
    stride: hidden,
  });
  const streamRows = () => room(stream);
  const normed = (norm: Norm | undefined, x: RowBuffer, name: string): RowBuffer => {
    if (!norm) return x;
    const y = room(name);
    op.norm(weights.norm(norm), x, y, rows);
    return y;
  };
  const replace = (norm: Norm | undefined) => {
    if (!norm) return;
    normed(norm, streamRows(), 'spare');
    workspace.swap(stream, 'spare');
  };
  const scale = (factor: number) =>
    op.queue.run(capLogits, {
      params: { elements, factor, cap: 0 },
      buffers: { x: streamRows().buffer },
      groups: Math.ceil(elements / 256),
      elements,
    });

  for (const step of weights.block.steps) {
    replace(step.entry);
    const made: { branch: RowBuffer; scale: number }[] = [];
    for (const { name, in: before, out, part, scale: share } of step.branches) {
      const { onSite } = passage;
      const own: Passage = {
        ...passage,
        weights,
        name,
        ...(onSite && {
          tap: (side, linears, x) => onSite(`${name}_${side}`, linears.map(weights.linear), x),
        }),
      };
      const branch = await kindOf(part).run(part, own, normed(before, streamRows(), 'normed'));
      made.push({ branch: normed(out, branch, `${name} normed`), scale: share });
    }
    if (step.keep !== undefined) scale(step.keep);
    for (const { branch, scale: share } of made) op.add(branch.buffer, streamRows().buffer, share, elements);
    replace(step.after);
  }
  const { factor } = weights.block;
  if (factor) scale(weights.values(factor)[0]!);
}
