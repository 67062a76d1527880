/** One block over one chunk of rows: its steps, one after the other, each joining its branches to the residual stream. */
import { capLogits } from '../backend/kernels/activation';
import type { Block, Norm, Part } from '../models/architecture';
import type { RowBuffer } from './operations';
import { kindOf } from './parts/kinds';
import type { BlockPassage, BlockWeights, Passage } from './parts/part';
import { correct, predict } from './planes';

type Step = Block['steps'][number];

const room = ({ workspace, chunk, hidden }: BlockPassage, name: string): RowBuffer => ({
  buffer: workspace.take(name, chunk.rows * hidden * 4),
  stride: hidden,
});

function normed(
  weights: BlockWeights,
  passage: BlockPassage,
  norm: Norm | undefined,
  x: RowBuffer,
  name: string,
): RowBuffer {
  if (!norm) return x;
  const y = room(passage, name);
  passage.operations.norm(weights.norm(norm), x, y, passage.chunk.rows);
  return y;
}

function replaceStream(weights: BlockWeights, passage: BlockPassage, norm: Norm | undefined): void {
  if (!norm) return;
  normed(weights, passage, norm, room(passage, passage.stream), 'spare');
  passage.workspace.swap(passage.stream, 'spare');
}

function scaleStream(passage: BlockPassage, factor: number): void {
  const elements = passage.chunk.rows * passage.hidden;
  passage.operations.queue.run(capLogits, {
    params: { elements, factor, cap: 0 },
    buffers: { x: room(passage, passage.stream).buffer },
  });
}

/** Runs the block; the stream of the chunk is replaced by what leaves it. */
export async function runBlock(weights: BlockWeights, passage: BlockPassage): Promise<void> {
  const { planes } = weights.block;
  const predicted = planes && (await predict(planes, weights, passage));
  for (const step of weights.block.steps) {
    enterStep(weights, step, passage);
    await runStep(weights, step, passage);
  }
  if (planes && predicted) await correct(planes, weights, passage, predicted);
  leaveBlock(weights, passage);
}

/** Prepares the stream for the branches of a step: applies its entry norm. */
export function enterStep(weights: BlockWeights, step: Step, passage: BlockPassage): void {
  replaceStream(weights, passage, step.entry);
}

/** The branches of a step, and their joining; until they join, the stream is as it was. */
export async function runStep(weights: BlockWeights, step: Step, passage: BlockPassage): Promise<void> {
  const { operations: op, chunk, hidden, stream } = passage;
  const elements = chunk.rows * hidden;
  const made: { branch: RowBuffer; scale: number }[] = [];
  // on the processor a sum of many inputs goes in stretches: on top of the stream each would be rounded to its size
  const isApart = step.branches.length > 1 || step.sum || step.keep !== undefined;
  const isJoined = !isApart && op.queue.engine.kind === 'webgpu';
  for (const { name, ahead, in: before, out, part, scale: share } of step.branches) {
    const { onSite } = passage;
    const onto = isJoined && !out && share === 1 ? room(passage, stream) : undefined;
    const own: Passage = {
      ...passage,
      weights,
      name,
      entered: room(passage, stream),
      ...(onto && { onto }),
      ...(onSite && {
        tap: (side, linears, x) => onSite(`${name}_${side}`, linears, x),
      }),
    };
    const entering = ahead ? await joinAhead(ahead, own, elements) : room(passage, stream);
    const kind = kindOf(part);
    const norm = before && weights.norm(before);
    const isTaken = norm && !onSite && kind.readsByLayers?.(part) && op.takesNorm(norm, chunk.rows);
    const x = isTaken ? { ...entering, norm } : normed(weights, passage, before, entering, 'normed');
    const branch = await kind.run(part, own, x);
    if (branch !== onto)
      made.push({ branch: normed(weights, passage, out, branch, `${name} normed`), scale: share });
  }
  if (step.keep !== undefined) scaleStream(passage, step.keep);
  const sum = step.sum ? room(passage, 'sum of branches') : undefined;
  if (sum) op.queue.engine.clear(sum.buffer);
  const target = sum ?? room(passage, stream);
  for (const { branch, scale } of made) op.add(branch.buffer, target.buffer, scale, elements);
  if (sum) {
    const joined = normed(weights, passage, step.sum, sum, 'sum normed');
    op.add(joined.buffer, room(passage, stream).buffer, 1, elements);
  }
  replaceStream(weights, passage, step.after);
}

/** Scales the stream after the last step, where the block has a factor. */
export function leaveBlock(weights: BlockWeights, passage: BlockPassage): void {
  const { factor } = weights.block;
  if (factor) scaleStream(passage, weights.values(factor)[0]!);
}

/** The stream plus a part's result on it. */
async function joinAhead(part: Part, passage: Passage, elements: number): Promise<RowBuffer> {
  const { operations: op, workspace, entered } = passage;
  // its linear layers are not among the branch's, and its result is not the branch's
  const { tap: _, onto: __, ...untapped } = passage;
  const made = await kindOf(part).run(part, untapped, entered);
  const sum = { buffer: workspace.take('stream and more', elements * 4), stride: entered.stride };
  op.queue.engine.clear(sum.buffer);
  op.add(entered.buffer, sum.buffer, 1, elements);
  op.add(made.buffer, sum.buffer, 1, elements);
  return sum;
}
