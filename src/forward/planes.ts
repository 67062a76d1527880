/**
 * Streams beside the model's own (alternating updates, Baykal et al. 2023; transformers modeling_gemma3n.py): begun behind the
 * embedding, predicted before a block and corrected after it, joined after the last.
 */
import { capLogits, GATE_CODE } from '../backend/kernels/activation';
import { matchSize, mixPlanes, spreadRows } from '../backend/kernels/planes';
import type { BlockPlanes, Vector } from '../models/architecture';
import { streamName } from './embedding';
import type { Model } from './model';
import type { Operations, RowBuffer } from './operations';
import { placeRows } from './parts/attention';
import { kindOf } from './parts/kinds';
import { type BlockPassage, type BlockWeights, type Passage, project } from './parts/part';

/** All streams of a chunk; nothing for models with one. */
export function planeRows(
  { architecture: { planes, hidden }, workspace }: Model,
  chunk: number,
  rows: number,
): { planes?: RowBuffer } {
  if (!planes) return {};
  const stride = planes.count * hidden;
  return { planes: { buffer: workspace.take(`planes ${chunk}`, rows * stride * 4), stride } };
}

type Place = Pick<Passage, 'operations' | 'workspace' | 'chunk' | 'places'>;

/** Fills the streams of a chunk: the embedding, and its projections at the embedding's size. */
export async function beginPlanes(model: Model, index: number, place: Place): Promise<void> {
  const { operations: op, outer, workspace } = model;
  const { hidden } = model.architecture;
  const { rows } = place.chunk;
  const stream = { buffer: workspace.take(streamName(index), rows * hidden * 4), stride: hidden };
  const made = { buffer: workspace.take('plane', rows * hidden * 4), stride: hidden };
  const { planes } = planeRows(model, index, rows);
  const put = (from: RowBuffer, begin: number) =>
    placeRows(place, {
      from,
      layout: { begin: 0, stride: hidden },
      heads: 1,
      dims: hidden,
      to: planes!.buffer,
      width: hidden,
      begin,
      stride: planes!.stride,
      keepRows: true,
    });
  put(stream, 0);
  for (const [p, layer] of outer.planes!.begin.entries()) {
    await op.linear([layer], stream, made, rows, op.nothing);
    sized(op, stream, made, rows);
    put(made, (p + 1) * hidden);
  }
}

/** The stream behind the last block: the mean of all, the others projected and at the size of the first. */
export async function joinPlanes(model: Model, index: number, place: Place): Promise<void> {
  const { operations: op, outer, workspace } = model;
  const { hidden } = model.architecture;
  const { rows } = place.chunk;
  const elements = rows * hidden;
  const room = (name: string) => ({ buffer: workspace.take(name, elements * 4), stride: hidden });
  const [stream, plane, made, sum] = [
    room(streamName(index)),
    room('plane'),
    room('plane projected'),
    room('spare'),
  ];
  const { planes } = planeRows(model, index, rows);
  op.queue.engine.clear(sum.buffer);
  op.add(stream.buffer, sum.buffer, 1, elements);
  for (const [p, layer] of outer.planes!.end.entries()) {
    placeRows(place, {
      from: planes!,
      layout: { begin: (p + 1) * hidden, stride: hidden },
      heads: 1,
      dims: hidden,
      to: plane.buffer,
      width: hidden,
      keepRows: true,
    });
    await op.linear([layer], plane, made, rows, op.nothing);
    sized(op, stream, made, rows);
    op.add(made.buffer, sum.buffer, 1, elements);
  }
  op.queue.run(capLogits, {
    params: { elements, factor: 1 / (outer.planes!.end.length + 1), cap: 0 },
    buffers: { x: sum.buffer },
  });
  workspace.swap(streamName(index), 'spare');
}

function sized(op: Operations, x: RowBuffer, y: RowBuffer, rows: number): void {
  op.queue.run(matchSize, { params: { rows, width: x.stride }, buffers: { x: x.buffer, y: y.buffer } });
}

/** The streams as the block finds them; the first takes the place of the chunk's stream. */
export async function predict(
  planes: BlockPlanes,
  weights: BlockWeights,
  passage: BlockPassage,
): Promise<RowBuffer> {
  const { chunk, hidden, workspace, stream } = passage;
  const all = passage.planes!;
  const predicted = {
    buffer: workspace.take('predicted planes', chunk.rows * all.stride * 4),
    stride: all.stride,
  };
  const own = { buffer: workspace.take(stream, chunk.rows * hidden * 4), stride: hidden };
  await mix(planes, planes.predict, weights, passage, { from: all, to: predicted, scored: own });
  return predicted;
}

/** Corrects the streams by what the steps made of the first, and adds what the layer takes of the token to the others. */
export async function correct(
  planes: BlockPlanes,
  weights: BlockWeights,
  passage: BlockPassage,
  predicted: RowBuffer,
): Promise<void> {
  const { chunk, hidden, workspace, stream, operations: op } = passage;
  const all = passage.planes!;
  const elements = chunk.rows * hidden;
  const own = { buffer: workspace.take(stream, elements * 4), stride: hidden };
  const rows = { from: predicted, to: all, scored: own, activated: own };
  await mix(planes, planes.correct, weights, passage, rows);
  const first = { buffer: workspace.take('corrected', elements * 4), stride: hidden };
  op.queue.engine.clear(first.buffer);
  op.add(workspace.take(stream, elements * 4), first.buffer, 1, elements);
  if (planes.scale) {
    const factors = { buffer: weights.vector(planes.scale), stride: 0 };
    op.gate(factors, first, chunk.rows, hidden, GATE_CODE.product, { oneRow: true });
  }
  const { part, out, name } = planes.share;
  const { onSite: _, ...quiet } = passage;
  const made = await kindOf(part).run(part, { ...quiet, weights, name, entered: first }, first);
  const normed = { buffer: workspace.take('share normed', elements * 4), stride: hidden };
  op.norm(weights.norm(out!), made, normed, chunk.rows);
  op.queue.run(spreadRows, {
    params: {
      rows: chunk.rows,
      width: hidden,
      copies: all.stride / hidden - 1,
      y_begin: hidden,
      y_stride: all.stride,
    },
    buffers: { x: normed.buffer, y: all.buffer },
  });
}

/** One mixing of all streams by coefficients of one of them; the first becomes the chunk's stream. */
async function mix(
  planes: BlockPlanes,
  coefficients: Vector,
  weights: BlockWeights,
  passage: BlockPassage,
  rows: { from: RowBuffer; to: RowBuffer; scored: RowBuffer; activated?: RowBuffer },
): Promise<void> {
  const { chunk, hidden, workspace, stream, operations: op } = passage;
  const elements = chunk.rows * hidden;
  const normed = { buffer: workspace.take('normed', elements * 4), stride: hidden };
  op.norm(weights.norm(planes.norm), rows.scored, normed, chunk.rows);
  const inner: Passage = { ...passage, weights, name: 'planes', entered: rows.scored };
  const scores = await project(inner, [planes.router], normed, 'plane scores');
  const first = workspace.take('spare', elements * 4);
  op.queue.run(mixPlanes, {
    params: {
      rows: chunk.rows,
      width: hidden,
      planes: rows.from.stride / hidden,
      s_stride: scores.stride,
      correct: rows.activated ? 1 : 0,
    },
    buffers: {
      x: rows.from.buffer,
      s: scores.buffer,
      w: weights.vector(coefficients),
      a: rows.activated?.buffer ?? op.nothing,
      y: rows.to.buffer,
      first,
    },
  });
  workspace.swap(stream, 'spare');
}
