/**
 * Attention: softmax(scale · q kᵀ + position) v, head by head, with what families add to it: norms and rotations of heads, a
 * window, ALiBi slopes, sinks, a gate, queries and keys out of narrow rows.
 */
import type { BackendBuffer } from '../../backend/backend';
import { GATE_CODE } from '../../backend/kernels/activation';
import {
  attention as attentionGroup,
  attentionLine,
  CHUNKED,
  columnCount,
  GROUP_ROWS,
  GROUP_WORDS,
  groupAt,
  NO_WINDOW,
  OWN_CODE,
  placeHeads,
  placeProjected,
} from '../../backend/kernels/attention';
import type { Attention, HeadLayout, Norm, Rope } from '../../models/architecture';
import type { Chunk } from '../chunk';
import type { RowBuffer } from '../operations';
import { type PartKind, type Passage, project, projectOut, room, type StateShape } from './part';

const state = (name: string, width: number, { keysOf }: Attention): StateShape => ({
  name,
  per: 'position',
  width,
  ...(keysOf !== undefined && { of: keysOf }),
});
const keys = (part: Attention) => state('keys', part.keyValueHeads * part.headDim, part);
const values = (part: Attention) => state('values', part.keyValueHeads * part.valueDim, part);

export const attention: PartKind<Attention> = {
  states: (part) => (part.keysOf === undefined ? [keys(part), values(part)] : []),
  readsByLayers: () => true,
  width: ({ projections, heads, keyValueHeads, headDim, valueDim, latent }) =>
    projections.reduce((sum, p) => sum + p.outputs, 0) +
    heads * (headDim + valueDim) +
    keyValueHeads * (headDim + valueDim) +
    (latent ? 2 * heads * (headDim + valueDim) : 0),
  async run(part, passage, x) {
    const { operations: op } = passage;
    await passage.tap?.('in', part.projections, x);
    const projected = await project(passage, part.projections, x, 'projected');
    const kept = { keys: passage.state(keys(part)), values: passage.state(values(part)) };
    const queries = room(passage, 'queries', part.heads * part.headDim).buffer;
    if (part.latent) await placeLatent(part, passage, projected, queries, kept);
    else if (isPlain(part)) placeAll(part, passage, projected, queries, kept);
    else {
      place(part, passage, projected, 'query', queries);
      if (part.keysOf === undefined) {
        place(part, passage, projected, 'key', kept.keys);
        place(part, passage, projected, 'value', kept.values);
      }
    }
    const mixed = room(passage, 'mixed', part.heads * part.valueDim);
    await mix(part, passage, queries, kept, mixed);
    if (part.gate) {
      const { begin, stride } = part.gate;
      op.gate(projected, mixed, passage.chunk.rows, part.heads * part.valueDim, GATE_CODE.sigmoid, {
        begin,
        group: part.valueDim,
        groupStride: stride,
      });
    }
    await passage.tap?.('out', [part.output], mixed);
    return projectOut(passage, part.output, mixed);
  },
};

/** Values mixed by the softmax of scores, a range of groups at a time. */
async function mix(
  part: Attention,
  passage: Passage,
  queries: BackendBuffer,
  kept: { keys: BackendBuffer; values: BackendBuffer },
  mixed: RowBuffer,
): Promise<void> {
  const { operations: op, workspace, chunk, weights } = passage;
  const { queue } = op;
  const own = part.bothWays && groupsBothWays(chunk, part.bothWays.reach);
  const words = own ?? chunk.groups;
  let { groups } = passage;
  if (own) {
    groups = workspace.take('groups both ways', own.byteLength);
    queue.write(groups, 0, own);
  }
  const ofHeads = part.sinks
    ? { kind: OWN_CODE.sinks, buffer: weights.vector(part.sinks) }
    : part.alibi
      ? { kind: OWN_CODE.slopes, buffer: workspace.slopes(part.alibi) }
      : { kind: OWN_CODE.none, buffer: op.nothing };
  for (const { begin, count, columns } of groupTiles(words, part, queue.workUnderWay)) {
    const work = count * part.heads * GROUP_ROWS * columns * (part.headDim + part.valueDim);
    await queue.breathe(work);
    queue.run(
      queue.engine.software ? attentionLine : attentionGroup,
      {
        params: {
          groups: count,
          group_begin: begin,
          heads: part.heads,
          heads_per_key: part.heads / part.keyValueHeads,
          dim4: part.headDim / 4,
          value4: part.valueDim / 4,
          window: windowWord(part),
          own_kind: ofHeads.kind,
          scale: part.scale,
          cap: part.softcap ?? 0,
        },
        buffers: {
          q: queries,
          k: kept.keys,
          v: kept.values,
          groups,
          own: ofHeads.buffer,
          room: workspace.take('scores', GROUP_ROWS * columns * 4),
          y: mixed.buffer,
        },
      },
      work,
    );
  }
}

function anglesOf(
  rope: Rope | undefined,
  workspace: Passage['workspace'],
  chunk: Chunk,
  op: Passage['operations'],
): BackendBuffer {
  return rope ? workspace.angles(rope, 1 + Math.max(...chunk.positions), chunk.long) : op.nothing;
}

/** Source and destination of heads that are placed. */
interface Placement {
  from: RowBuffer;
  layout: HeadLayout;
  heads: number;
  /** Dimensions of a head that are placed. */
  dims: number;
  rope?: Rope | undefined;
  to: BackendBuffer;
  /** Width of a head there, and where in it the dimensions begin. */
  width: number;
  begin?: number;
  /** Width of a row there, where it holds more than these heads. */
  stride?: number;
  /** Rows stay where they are: queries, and what is not yet in its place. */
  keepRows: boolean;
}

/** Copies heads, rotated or not, to where they are read. */
export function placeRows(
  {
    operations: op,
    workspace,
    chunk,
    places,
  }: Pick<Passage, 'operations' | 'workspace' | 'chunk' | 'places'>,
  { from, layout, heads, dims, rope, to, width, begin = 0, stride = heads * width, keepRows }: Placement,
): void {
  op.queue.run(placeHeads, {
    params: {
      rows: chunk.rows,
      heads,
      head_dim: dims,
      half: rope ? rope.dims / 2 : 0,
      x_begin: layout.begin,
      x_stride: from.stride,
      head_stride: layout.stride,
      group: layout.group?.heads ?? heads,
      group_stride: layout.group?.stride ?? 0,
      adjacent: rope?.pairs === 'adjacent' ? 1 : 0,
      y_begin: begin,
      y_dim: width,
      y_stride: stride,
      keep_rows: keepRows ? 1 : 0,
    },
    buffers: {
      x: from.buffer,
      places,
      angles: anglesOf(rope, workspace, chunk, op),
      y: to,
    },
  });
}

/** Whether queries, keys and values differ in nothing but where they begin, and that values are not rotated. */
function isPlain({ headDim, valueDim, layout, ...part }: Attention): boolean {
  const isNormed = part.queryNorm || part.keyNorm || part.valueNorm;
  const isGrouped = layout.query.group || layout.key.group || layout.value.group;
  return headDim === valueDim && !isNormed && !isGrouped && !part.queryRope && part.keysOf === undefined;
}

/** Puts queries, keys and values where they belong. */
function placeAll(
  { heads, keyValueHeads, headDim, rope, layout }: Attention,
  { operations: op, workspace, chunk, places }: Passage,
  projected: RowBuffer,
  queries: BackendBuffer,
  { keys, values }: { keys: BackendBuffer; values: BackendBuffer },
): void {
  op.queue.run(placeProjected, {
    params: {
      rows: chunk.rows,
      heads,
      key_heads: keyValueHeads,
      head_dim: headDim,
      half: rope ? rope.dims / 2 : 0,
      adjacent: rope?.pairs === 'adjacent' ? 1 : 0,
      x_stride: projected.stride,
      query_begin: layout.query.begin,
      query_stride: layout.query.stride,
      key_begin: layout.key.begin,
      key_stride: layout.key.stride,
      value_begin: layout.value.begin,
      value_stride: layout.value.stride,
    },
    buffers: {
      x: projected.buffer,
      places,
      angles: anglesOf(rope, workspace, chunk, op),
      queries,
      keys,
      values,
    },
  });
}

/** Takes one kind of heads out of the projected rows, norms them, rotates them and puts them where they belong. */
function place(
  part: Attention,
  passage: Passage,
  projected: RowBuffer,
  kind: 'query' | 'key' | 'value',
  to: BackendBuffer,
): void {
  const keepRows = kind === 'query';
  const heads = kind === 'query' ? part.heads : part.keyValueHeads;
  const dims = kind === 'value' ? part.valueDim : part.headDim;
  const norm = { query: part.queryNorm, key: part.keyNorm, value: part.valueNorm }[kind];
  const rope = kind === 'value' ? undefined : kind === 'query' ? (part.queryRope ?? part.rope) : part.rope;
  const last = { heads, dims, to, width: dims, keepRows };
  const layout = part.layout[kind];
  const packed = { begin: 0, stride: dims };
  if (!norm) placeRows(passage, { ...last, from: projected, layout, rope });
  else if (part.normAfterRope) {
    const rotated = room(passage, 'rotated heads', heads * dims);
    placeRows(passage, { ...last, from: projected, layout, rope, to: rotated.buffer, keepRows: true });
    const normed = normHeads(norm, passage, rotated, packed, heads, dims);
    placeRows(passage, { ...last, from: normed, layout: packed });
  } else {
    const normed = normHeads(norm, passage, projected, layout, heads, dims);
    placeRows(passage, { ...last, from: normed, layout: packed, rope });
  }
}

/** A norm of every head, or of all heads of a row together, side by side. */
function normHeads(
  norm: Norm,
  passage: Passage,
  from: RowBuffer,
  { begin, stride }: HeadLayout,
  heads: number,
  dims: number,
): RowBuffer {
  const groups = norm.width === heads * dims ? 1 : heads;
  const normed = room(passage, 'normed heads', heads * dims);
  const { operations: op, weights, chunk } = passage;
  op.norm(weights.norm(norm), from, normed, chunk.rows, { begin, groups, stride });
  return normed;
}

/** Queries, keys and values out of the narrow rows of latent attention; the rotated dimensions come last in a head. */
async function placeLatent(
  part: Attention,
  passage: Passage,
  projected: RowBuffer,
  queries: BackendBuffer,
  kept: { keys: BackendBuffer; values: BackendBuffer },
): Promise<void> {
  const { operations: op, weights, chunk } = passage;
  const { heads, headDim, valueDim, rope } = part;
  const { query, keyValue, rotated } = part.latent!;
  const plain = headDim - rotated.width;
  const expand = async (name: string, { norm, expand: linear }: NonNullable<typeof query>, begin: number) => {
    const narrow = room(passage, 'narrow', norm.width);
    op.norm(weights.norm(norm), projected, narrow, chunk.rows, { begin, groups: 1, stride: 0 });
    return project(passage, [linear], narrow, name);
  };
  const wide = query ? await expand('latent queries', query, 0) : projected;
  const shared = await expand('latent keys', keyValue, keyValue.begin);
  const put = (
    from: RowBuffer,
    begin: number,
    stride: number,
    dims: number,
    to: BackendBuffer,
    more: Partial<Placement>,
  ) =>
    placeRows(passage, {
      from,
      layout: { begin, stride },
      heads,
      dims,
      to,
      width: headDim,
      keepRows: false,
      ...more,
    });
  put(wide, 0, headDim, plain, queries, { keepRows: true });
  put(wide, plain, headDim, rotated.width, queries, { rope, begin: plain, keepRows: true });
  put(shared, 0, plain + valueDim, plain, kept.keys, {});
  put(projected, rotated.begin, 0, rotated.width, kept.keys, { rope, begin: plain });
  put(shared, plain, plain + valueDim, valueDim, kept.values, { width: valueDim });
}

/** Window of a row as one word for the kernels: its width, or CHUNKED + the chunk's width. */
function windowWord({ window = NO_WINDOW, chunk }: Attention): number {
  return chunk === undefined ? window : CHUNKED + chunk;
}

/**
 * Groups of rows that see both sides, a row each: the keys of one are those from the first that it sees to the last, and it
 * stands at their end. Every sequence is whole.
 * @param reach keys seen on each side; all where absent
 */
function groupsBothWays(
  { pieces, places, rows }: Chunk,
  reach = Number.POSITIVE_INFINITY,
): Uint32Array<ArrayBuffer> {
  const groups = new Uint32Array(rows * GROUP_WORDS);
  for (const { row, count } of pieces) {
    const origin = places[2 * row]!;
    for (let i = 0; i < count; i++) {
      const first = Math.max(0, i - reach);
      const end = Math.min(count, i + reach + 1);
      groups.set([row + i, 1, origin + first, end - first - 1], (row + i) * GROUP_WORDS);
    }
  }
  return groups;
}

/** Ranges of groups whose dispatch has at most so many multiply-adds, with the most columns a group of the range has. */
function groupTiles(
  groups: Uint32Array,
  part: Attention,
  most: number,
): { begin: number; count: number; columns: number }[] {
  const window = windowWord(part);
  const columns = Array.from({ length: groups.length / GROUP_WORDS }, (_, g) =>
    columnCount(groupAt(groups, g), window),
  );
  const widest = (from: number, to: number) => columns.slice(from, to).reduce((a, b) => Math.max(a, b), 0);
  const work = part.heads * GROUP_ROWS * widest(0, columns.length) * (part.headDim + part.valueDim);
  const count = Math.max(1, Math.floor(most / work));
  return Array.from({ length: Math.ceil(columns.length / count) }, (_, i) => {
    const begin = i * count;
    const end = Math.min(begin + count, columns.length);
    return { begin, count: end - begin, columns: widest(begin, end) };
  });
}
