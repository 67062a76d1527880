import attentionWgsl from '../../../shaders/attention/attention.wgsl?raw';
import attentionLineWgsl from '../../../shaders/attention/attention-line.wgsl?raw';
import placeHeadsWgsl from '../../../shaders/attention/place-heads.wgsl?raw';
import placeProjectedWgsl from '../../../shaders/attention/place-projected.wgsl?raw';
import { defineKernel } from '../kernel';

/** Groups of rows, and what they see. See shaders/lib/attention.wgsl. */

/** Rows of a group at most. */
export const GROUP_ROWS = 4;
/** Words of a group: first row, rows, row of keys where its sequence begins, position of the first row. */
export const GROUP_WORDS = 4;
/** A window for layers that see everything. */
export const NO_WINDOW = 0x7fffffff;
/** Set in a window that is the size of a chunk: rows see keys of their own chunk of positions alone. */
export const CHUNKED = 0x80000000;

interface AttentionGroup {
  row: number;
  rows: number;
  origin: number;
  position: number;
}

export function groupAt(groups: Uint32Array, g: number): AttentionGroup {
  const at = g * GROUP_WORDS;
  return { row: groups[at]!, rows: groups[at + 1]!, origin: groups[at + 2]!, position: groups[at + 3]! };
}

/** First key that a row at this position may see. */
export function firstKey(position: number, window: number): number {
  if (window >= CHUNKED) return position - (position % (window - CHUNKED));
  return Math.max(0, position + 1 - window);
}

/** Key of a group's first column. */
export function firstColumn({ position }: AttentionGroup, window: number): number {
  return firstKey(position, window) & ~3;
}

/** Columns of a group, a multiple of 4. */
export function columnCount(group: AttentionGroup, window: number): number {
  return Math.ceil((group.position + group.rows - firstColumn(group, window)) / 4) * 4;
}

/** Heads out of a projection's rows, rotated, to their places. See shaders/attention/place-heads.wgsl. */
export const placeHeads = defineKernel({
  id: 'place-heads',
  wgsl: placeHeadsWgsl,
  libraries: ['rotate'],
  params: {
    rows: 'u32',
    heads: 'u32',
    head_dim: 'u32',
    half: 'u32',
    x_begin: 'u32',
    x_stride: 'u32',
    head_stride: 'u32',
    group: 'u32',
    group_stride: 'u32',
    adjacent: 'u32',
    y_begin: 'u32',
    y_dim: 'u32',
    y_stride: 'u32',
    keep_rows: 'u32',
  },
  buffers: { x: 'f32', places: 'u32', angles: 'f32', y: 'rw f32' },
  work: ({ rows }) => rows,
  span: () => 1,
  wasm(k, { params, at, words }) {
    const { rows, heads, head_dim, half, group, adjacent, keep_rows } = params;
    const places = at('places') / 4;
    const x = at('x') + params.x_begin * 4;
    const y = at('y') + params.y_begin * 4;
    for (let r = 0; r < rows; r++) {
      const row = keep_rows === 1 ? r : words[places + 2 * r]!;
      k.placeRow(
        x + r * params.x_stride * 4,
        y + row * params.y_stride * 4,
        at('angles') + words[places + 2 * r + 1]! * 8 * half,
        heads,
        head_dim,
        half,
        params.head_stride * 4,
        group,
        params.group_stride * 4,
        params.y_dim * 4,
        adjacent,
      );
    }
  },
});

/** Queries, keys and values at once. See shaders/attention/place-projected.wgsl. */
export const placeProjected = defineKernel({
  id: 'place-projected',
  wgsl: placeProjectedWgsl,
  libraries: ['rotate'],
  params: {
    rows: 'u32',
    heads: 'u32',
    key_heads: 'u32',
    head_dim: 'u32',
    half: 'u32',
    adjacent: 'u32',
    x_stride: 'u32',
    query_begin: 'u32',
    query_stride: 'u32',
    key_begin: 'u32',
    key_stride: 'u32',
    value_begin: 'u32',
    value_stride: 'u32',
  },
  buffers: {
    x: 'f32',
    places: 'u32',
    angles: 'f32',
    queries: 'rw f32',
    keys: 'rw f32',
    values: 'rw f32',
  },
  work: ({ rows }) => rows,
  span: () => 1,
  wasm(k, { params: p, at, words }) {
    const pitch = p.head_dim * 4;
    const kept = p.key_heads * pitch;
    for (let r = 0; r < p.rows; r++) {
      const place = at('places') / 4 + 2 * r;
      const to = words[place]!;
      const cos = at('angles') + words[place + 1]! * 8 * p.half;
      const row = at('x') + r * p.x_stride * 4;
      const put = (begin: number, stride: number, y: number, heads: number, half: number) =>
        k.placeRow(row + begin * 4, y, cos, heads, p.head_dim, half, stride * 4, heads, 0, pitch, p.adjacent);
      put(p.query_begin, p.query_stride, at('queries') + r * p.heads * pitch, p.heads, p.half);
      put(p.key_begin, p.key_stride, at('keys') + to * kept, p.key_heads, p.half);
      put(p.value_begin, p.value_stride, at('values') + to * kept, p.key_heads, 0);
    }
  },
});

/** The one number that a head may have of its own: none, the slope of ALiBi, or a sink's score. */
export const OWN_CODE = { none: 0, slopes: 1, sinks: 2 } as const;

const define = (form: 'group' | 'line') =>
  defineKernel({
    id: form === 'line' ? 'attention-line' : 'attention',
    wgsl: form === 'line' ? attentionLineWgsl : attentionWgsl,
    libraries: ['special', 'attention'],
    params: {
      groups: 'u32',
      group_begin: 'u32',
      heads: 'u32',
      heads_per_key: 'u32',
      dim4: 'u32',
      value4: 'u32',
      window: 'u32',
      own_kind: 'u32',
      scale: 'f32',
      cap: 'f32',
    },
    buffers: { q: 'vec4f', k: 'vec4f', v: 'vec4f', groups: 'u32', own: 'f32', room: 'rw f32', y: 'rw vec4f' },
    work: ({ groups, heads, value4 }) =>
      groups * heads * (form === 'line' ? GROUP_ROWS : Math.ceil(value4 / 64)),
    span: () => (form === 'line' ? 64 : 1),
    wasm(k, s) {
      const { params: p, at, words, floats, size } = s;
      const table = words.subarray(at('groups') / 4, at('groups') / 4 + size('groups') / 4);
      const [dim, value] = [p.dim4 * 16, p.value4 * 16];
      const keyHeads = p.heads / p.heads_per_key;
      for (let index = 0; index < p.groups * p.heads; index++) {
        const head = index % p.heads;
        const keyHead = Math.floor(head / p.heads_per_key);
        const group = groupAt(table, p.group_begin + Math.floor(index / p.heads));
        const { row, rows, origin, position } = group;
        const first = firstColumn(group, p.window);
        const columns = columnCount(group, p.window);
        const keys = position + rows - first;
        const own = p.own_kind === OWN_CODE.none ? 0 : floats[at('own') / 4 + head]!;
        k.attentionScores(
          at('q') + (row * p.heads + head) * dim,
          p.heads * dim,
          rows,
          at('k') + ((origin + first) * keyHeads + keyHead) * dim,
          keyHeads * dim,
          keys,
          p.dim4 * 4,
          at('room'),
          columns * 4,
          p.scale,
          p.cap,
          p.own_kind === OWN_CODE.slopes ? own : 0,
          first,
        );
        for (let i = 0; i < rows; i++) {
          const line = at('room') + i * columns * 4;
          const begin = firstKey(position + i, p.window) - first;
          const end = position + i - first + 1;
          if (p.own_kind === OWN_CODE.sinks) softmaxBeside(own, floats, line / 4, columns, begin, end);
          else k.softmaxLine(line, columns, begin, end);
        }
        k.attentionMix(
          at('room'),
          columns * 4,
          rows,
          at('v') + ((origin + first) * keyHeads + keyHead) * value,
          keyHeads * value,
          keys,
          p.value4 * 4,
          at('y') + (row * p.heads + head) * value,
          p.heads * value,
        );
      }
    },
  });

/** Values of keys mixed by the softmax of their scores: a workgroup a head of a group. See shaders/lib/attention.wgsl. */
export const attention = define('group');
/** The same, an invocation a head of a row. */
export const attentionLine = define('line');

/** Softmax over columns [begin, end) of a line and one more score; the other columns become 0. */
function softmaxBeside(
  sink: number,
  floats: Float32Array,
  line: number,
  columns: number,
  begin: number,
  end: number,
): void {
  let top = sink;
  for (let at = line + begin; at < line + end; at++) if (!(floats[at]! <= top)) top = floats[at]!;
  let sum = Math.exp(sink - top);
  for (let at = line + begin; at < line + end; at++) sum += Math.exp(floats[at]! - top);
  floats.fill(0, line, line + begin);
  for (let at = line + begin; at < line + end; at++) floats[at] = Math.exp(floats[at]! - top) / sum;
  floats.fill(0, line + end, line + columns);
}
