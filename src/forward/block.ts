/** One block over one chunk of rows: attention and MLP join the residual stream. */
import type { BackendBuffer } from '../backend/backend';
import {
  columnCount,
  GROUP_ROWS,
  GROUP_WORDS,
  groupAt,
  NO_WINDOW,
} from '../backend/kernels/attention-groups';
import { attentionMix } from '../backend/kernels/attention-mix';
import { attentionScores } from '../backend/kernels/attention-scores';
import { attentionSoftmax, attentionSoftmaxLine } from '../backend/kernels/attention-softmax';
import { placeHeads } from '../backend/kernels/place-heads';
import type { Attention, Block } from '../models/architecture';
import type { LinearSite } from '../models/claim';
import type { Chunk } from './chunk';
import type { DeviceLinear } from './device-weights';
import type { DeviceNorm, Operations, RowBuffer } from './operations';
import type { Widths, Workspace } from './workspace';

/** A block's weights on the device. */
export interface BlockWeights {
  block: Block;
  projections: DeviceLinear[];
  output: DeviceLinear;
  up: DeviceLinear[];
  down: DeviceLinear;
  norms: Partial<Record<NormPlace, DeviceNorm>>;
  queryNorm?: DeviceNorm;
  keyNorm?: DeviceNorm;
  byteLength: number;
  close(): void;
}

/** Where a block's norms stand (`Block`). */
export const NORM_PLACES = [
  'attentionIn',
  'attentionOut',
  'attentionAfter',
  'mlpIn',
  'mlpOut',
  'mlpAfter',
] as const;
export type NormPlace = (typeof NORM_PLACES)[number];

/** What a chunk meets in a block, besides the weights. */
export interface Passage {
  operations: Operations;
  workspace: Workspace;
  widths: Widths;
  chunk: Chunk;
  /** Name of the chunk's stream in the workspace. */
  stream: string;
  /** Per row of the chunk: row among the keys, position. */
  places: BackendBuffer;
  /** The chunk's groups. */
  groups: BackendBuffer;
  keys: BackendBuffer;
  values: BackendBuffer;
  /** Called with the rows that enter linear layers, when they are on the device. */
  onSite?(site: LinearSite, weights: readonly DeviceLinear[], rows: RowBuffer): void | Promise<void>;
}

/** Bytes of attention scores at a time. */
const SCORE_BYTES = 32 << 20;

/** Runs the block; the stream of the chunk is replaced by what leaves it. */
export async function runBlock(weights: BlockWeights, passage: Passage): Promise<void> {
  const { operations: op, workspace, widths, chunk, stream } = passage;
  const { block, norms } = weights;
  const rows = chunk.rows;
  const bytes = (width: number) => rows * width * 4;
  const streamRows = (): RowBuffer => ({
    buffer: workspace.take(stream, bytes(widths.hidden)),
    stride: widths.hidden,
  });
  const room = (name: string): RowBuffer => ({
    buffer: workspace.take(name, bytes(widths.hidden)),
    stride: widths.hidden,
  });
  const normed = (n: DeviceNorm | undefined, x: RowBuffer, name: string): RowBuffer => {
    if (!n) return x;
    const y = room(name);
    op.norm(n, x, y, rows);
    return y;
  };
  const join = (branch: RowBuffer) =>
    op.add(branch.buffer, streamRows().buffer, block.residualScale, rows * widths.hidden);
  const after = (n: DeviceNorm | undefined) => {
    if (!n) return;
    op.norm(n, streamRows(), room('spare'), rows);
    workspace.swap(stream, 'spare');
  };

  const attended = await attend(weights, passage, normed(norms.attentionIn, streamRows(), 'normed'));
  const fromAttention = normed(norms.attentionOut, attended, 'branch normed');
  if (!block.parallel) join(fromAttention);
  after(norms.attentionAfter);
  const thought = await think(weights, passage, normed(norms.mlpIn, streamRows(), 'normed'));
  if (block.parallel) join(fromAttention);
  join(normed(norms.mlpOut, thought, 'branch normed'));
  after(norms.mlpAfter);
}

/** The attention branch of rows x: [rows, hidden] in 'attention branch'. */
async function attend(weights: BlockWeights, passage: Passage, x: RowBuffer): Promise<RowBuffer> {
  const { operations: op, workspace, widths, chunk } = passage;
  const { attention } = weights.block;
  const { rows } = chunk;
  const { queue } = op;
  await passage.onSite?.('attention_in', weights.projections, x);
  const projected = project(op, workspace, weights.projections, x, widths.projected, rows, 'projected');
  const queries = workspace.take('queries', rows * widths.heads * 4);
  place(passage, attention, projected, 'query', weights.queryNorm, queries);
  place(passage, attention, projected, 'key', weights.keyNorm, passage.keys);
  place(passage, attention, projected, 'value', undefined, passage.values);

  const mixed = {
    buffer: workspace.take('mixed', rows * widths.heads * 4),
    stride: attention.heads * attention.headDim,
  };
  const window = attention.window ?? NO_WINDOW;
  const shape = {
    heads: attention.heads,
    share: attention.heads / attention.keyValueHeads,
    dim4: attention.headDim / 4,
    window,
  };
  const softmax = queue.engine.software ? attentionSoftmaxLine : attentionSoftmax;
  for (const { begin, count, span } of groupTiles(chunk, attention, queue.dispatchWork)) {
    const lines = count * attention.heads * GROUP_ROWS;
    const scores = workspace.take('scores', lines * span * 4);
    const part = { groups: count, group_begin: begin, span };
    const items = count * attention.heads * (span / 4);
    const work = lines * span * attention.headDim;
    queue.run(
      attentionScores,
      {
        params: {
          ...part,
          ...shape,
          sloped: attention.alibi ? 1 : 0,
          scale: attention.scale,
          cap: attention.softcap ?? 0,
        },
        buffers: {
          q: queries,
          k: passage.keys,
          groups: passage.groups,
          slopes: attention.alibi ? workspace.slopes(attention.alibi) : op.nothing,
          scores,
        },
        groups: Math.ceil(items / 64),
        elements: items,
      },
      work,
    );
    queue.run(softmax, {
      params: { ...part, heads: attention.heads, window },
      buffers: { groups: passage.groups, scores },
      groups: queue.engine.software ? Math.ceil(lines / 64) : lines,
      elements: lines,
    });
    const mixes = count * attention.heads * shape.dim4;
    queue.run(
      attentionMix,
      {
        params: { ...part, ...shape },
        buffers: { shares: scores, v: passage.values, groups: passage.groups, y: mixed.buffer },
        groups: Math.ceil(mixes / 64),
        elements: mixes,
      },
      work,
    );
    await queue.breathe();
  }
  await passage.onSite?.('attention_out', [weights.output], mixed);
  const branch = project(op, workspace, [weights.output], mixed, widths.hidden, rows, 'attention branch');
  await queue.breathe();
  return branch;
}

/** The MLP branch of rows x: [rows, hidden] in 'mlp branch'. */
async function think(weights: BlockWeights, passage: Passage, x: RowBuffer): Promise<RowBuffer> {
  const { operations: op, workspace, widths, chunk } = passage;
  const { mlp } = weights.block;
  const { rows } = chunk;
  await passage.onSite?.('mlp_in', weights.up, x);
  const inner = project(op, workspace, weights.up, x, widths.inner, rows, 'inner');
  await op.queue.breathe();
  const activated = { buffer: workspace.take('activated', rows * widths.activated * 4), stride: mlp.inner };
  op.activate(mlp, inner, activated, rows);
  await passage.onSite?.('mlp_out', [weights.down], activated);
  const branch = project(op, workspace, [weights.down], activated, widths.hidden, rows, 'mlp branch');
  await op.queue.breathe();
  return branch;
}

/** The outputs of layers that share an input, side by side in rows of `width`. */
function project(
  op: Operations,
  workspace: Workspace,
  layers: readonly DeviceLinear[],
  x: RowBuffer,
  width: number,
  rows: number,
  name: string,
): RowBuffer {
  const y = { buffer: workspace.take(name, rows * width * 4), stride: width };
  const rank = Math.max(0, ...layers.map((layer) => layer.lowRank?.rank ?? 0));
  const scratch = workspace.take('low rank', rows * rank * 4);
  let begin = 0;
  for (const layer of layers) {
    op.linear(layer, x, y, begin, rows, scratch);
    begin += layer.outputs;
  }
  return y;
}

/** Takes one kind of heads out of the projected rows, norms them, rotates them and puts them where they belong. */
function place(
  { operations: op, workspace, widths, chunk, places }: Passage,
  attention: Attention,
  projected: RowBuffer,
  part: 'query' | 'key' | 'value',
  headNorm: DeviceNorm | undefined,
  to: BackendBuffer,
): void {
  const { headDim, rope } = attention;
  const heads = part === 'query' ? attention.heads : attention.keyValueHeads;
  let from = projected;
  let { begin, stride } = attention.layout[part];
  if (headNorm) {
    const whole = headNorm.norm.width === heads * headDim;
    const normed = {
      buffer: workspace.take('normed heads', chunk.rows * widths.heads * 4),
      stride: heads * headDim,
    };
    op.norm(headNorm, projected, normed, chunk.rows, { begin, groups: whole ? 1 : heads, stride });
    from = normed;
    begin = 0;
    stride = headDim;
  }
  const rotated = part === 'value' ? undefined : rope;
  op.queue.run(placeHeads, {
    params: {
      rows: chunk.rows,
      heads,
      head_dim: headDim,
      half: rotated ? rotated.dims / 2 : 0,
      x_begin: begin,
      x_stride: from.stride,
      head_stride: stride,
      keep_rows: part === 'query' ? 1 : 0,
    },
    buffers: {
      x: from.buffer,
      places,
      angles: rotated ? workspace.angles(rotated, 1 + Math.max(...chunk.positions), chunk.long) : op.nothing,
      y: to,
    },
    groups: chunk.rows,
    elements: chunk.rows,
  });
}

/** Ranges of groups whose scores fit the room for them, with the most columns a group of the range has. */
function groupTiles(
  { groups }: Chunk,
  { heads, headDim, window = NO_WINDOW }: Attention,
  dispatchWork: number,
): { begin: number; count: number; span: number }[] {
  const columns = Array.from({ length: groups.length / GROUP_WORDS }, (_, g) =>
    columnCount(groupAt(groups, g), window),
  );
  const widest = (from: number, to: number) => columns.slice(from, to).reduce((a, b) => Math.max(a, b), 0);
  const scores = heads * GROUP_ROWS * widest(0, columns.length);
  const most = Math.min(SCORE_BYTES / 4, dispatchWork / headDim);
  const count = Math.max(1, Math.floor(most / scores));
  return Array.from({ length: Math.ceil(columns.length / count) }, (_, i) => {
    const begin = i * count;
    const end = Math.min(begin + count, columns.length);
    return { begin, count: end - begin, span: widest(begin, end) };
  });
}
