import attentionMixWgsl from '../../../shaders/attention/attention-mix.wgsl?raw';
import attentionScoresWgsl from '../../../shaders/attention/attention-scores.wgsl?raw';
import attentionSinksWgsl from '../../../shaders/attention/attention-sinks.wgsl?raw';
import attentionSoftmaxWgsl from '../../../shaders/attention/attention-softmax.wgsl?raw';
import attentionSoftmaxLineWgsl from '../../../shaders/attention/attention-softmax-line.wgsl?raw';
import placeHeadsWgsl from '../../../shaders/attention/place-heads.wgsl?raw';
import { defineKernel, type Strip } from '../kernel';

/** The layout that the attention kernels share. See shaders/lib/attention.wgsl. */

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

/** Calls `work` for every head of every group of a dispatch: its index, the head, its group, and its first key. */
function eachHead(
  { params, words, at, size }: Strip<'groups' | 'group_begin' | 'heads' | 'window', 'groups'>,
  work: (index: number, head: number, group: AttentionGroup, first: number) => void,
): void {
  const { groups, group_begin, heads, window } = params;
  const begin = at('groups') / 4;
  const all = words.subarray(begin, begin + size('groups') / 4);
  for (let g = 0; g < groups; g++) {
    const group = groupAt(all, group_begin + g);
    const first = firstColumn(group, window);
    for (let head = 0; head < heads; head++) work(g * heads + head, head, group, first);
  }
}

/** Bytes of a head, of the heads of a row, of a row of keys, and of a row of scores. */
function attentionPitches({
  heads,
  heads_per_key,
  dim4,
  line_width,
}: Readonly<Record<'heads' | 'heads_per_key' | 'dim4' | 'line_width', number>>) {
  const head = dim4 * 16;
  return { head, row: heads * head, key: (heads / heads_per_key) * head, line: line_width * 4 };
}

/** Heads out of a projection's rows, rotated, to their places. See shaders/attention/place-heads.wgsl. */
export const placeHeads = defineKernel({
  id: 'place-heads',
  wgsl: placeHeadsWgsl,
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

/** Scores of the columns each group sees. See shaders/attention/attention-scores.wgsl. */
export const attentionScores = defineKernel({
  id: 'attention-scores',
  wgsl: attentionScoresWgsl,
  libraries: ['attention', 'special'],
  params: {
    groups: 'u32',
    group_begin: 'u32',
    heads: 'u32',
    heads_per_key: 'u32',
    dim4: 'u32',
    line_width: 'u32',
    window: 'u32',
    sloped: 'u32',
    scale: 'f32',
    cap: 'f32',
  },
  buffers: { q: 'vec4f', k: 'vec4f', groups: 'u32', slopes: 'f32', scores: 'rw vec4f' },
  work: ({ groups, heads, line_width }) => groups * heads * (line_width / 4),
  span: () => 64,
  wasm(k, s) {
    const { heads_per_key, dim4, sloped, scale, cap } = s.params;
    const pitch = attentionPitches(s.params);
    eachHead(s, (index, head, { row, rows, origin, position }, first) => {
      k.attentionScores(
        s.at('q') + row * pitch.row + head * pitch.head,
        pitch.row,
        rows,
        s.at('k') + (origin + first) * pitch.key + Math.floor(head / heads_per_key) * pitch.head,
        pitch.key,
        position + rows - first,
        dim4 * 4,
        s.at('scores') + index * GROUP_ROWS * pitch.line,
        pitch.line,
        scale,
        cap,
        sloped === 1 ? s.floats[s.at('slopes') / 4 + head]! : 0,
        first,
      );
    });
  },
});

/** Rows of scores. */
const linesOf = ({ groups, heads }: Readonly<Record<'groups' | 'heads', number>>) =>
  groups * heads * GROUP_ROWS;

const define = (id: string, wgsl: string, lines: number) =>
  defineKernel({
    id,
    wgsl,
    libraries: ['attention', 'softmax'],
    params: { groups: 'u32', group_begin: 'u32', heads: 'u32', line_width: 'u32', window: 'u32' },
    buffers: { groups: 'u32', scores: 'rw vec4f' },
    work: linesOf,
    span: () => lines,
    wasm(k, s) {
      const { line_width, window } = s.params;
      eachHead(s, (index, _, group, base) => {
        const columns = columnCount(group, window);
        for (let i = 0; i < group.rows; i++) {
          const line = s.at('scores') + (index * GROUP_ROWS + i) * line_width * 4;
          const position = group.position + i;
          k.softmaxLine(line, columns, firstKey(position, window) - base, position - base + 1);
        }
      });
    },
  });

/** Softmax over the columns each row may see, in place: a workgroup a line. See shaders/attention/attention-softmax.wgsl. */
export const attentionSoftmax = define('attention-softmax', attentionSoftmaxWgsl, 1);
/** The same, an invocation a line. See shaders/attention/attention-softmax-line.wgsl. */
export const attentionSoftmaxLine = define('attention-softmax-line', attentionSoftmaxLineWgsl, 64);

/** Softmax in which a score of each head takes its share and brings no value. See shaders/attention/attention-sinks.wgsl. */
export const attentionSinks = defineKernel({
  id: 'attention-sinks',
  wgsl: attentionSinksWgsl,
  libraries: ['attention', 'softmax'],
  params: { groups: 'u32', group_begin: 'u32', heads: 'u32', line_width: 'u32', window: 'u32' },
  buffers: { groups: 'u32', scores: 'rw vec4f', sinks: 'f32' },
  work: linesOf,
  span: () => 64,
  cpu({ params, f32, u32 }) {
    const { heads, line_width, window } = params;
    const groups = u32('groups');
    const scores = f32('scores');
    const sinks = f32('sinks');
    for (let index = 0; index < params.groups * heads; index++) {
      const g = groupAt(groups, params.group_begin + Math.floor(index / heads));
      const base = firstColumn(g, window);
      const sink = sinks[index % heads]!;
      for (let i = 0; i < g.rows; i++) {
        const line = (index * 4 + i) * line_width;
        const begin = line + firstKey(g.position + i, window) - base;
        const end = line + g.position + i - base + 1;
        let top = sink;
        for (let at = begin; at < end; at++) if (!(scores[at]! <= top)) top = scores[at]!;
        let sum = Math.exp(sink - top);
        for (let at = begin; at < end; at++) sum += Math.exp(scores[at]! - top);
        scores.fill(0, line, begin);
        for (let at = begin; at < end; at++) scores[at] = Math.exp(scores[at]! - top) / sum;
        scores.fill(0, end, line + columnCount(g, window));
      }
    }
  },
});

/** Values mixed by their shares. See shaders/attention/attention-mix.wgsl. */
export const attentionMix = defineKernel({
  id: 'attention-mix',
  wgsl: attentionMixWgsl,
  libraries: ['attention'],
  params: {
    groups: 'u32',
    group_begin: 'u32',
    heads: 'u32',
    heads_per_key: 'u32',
    dim4: 'u32',
    line_width: 'u32',
    window: 'u32',
  },
  buffers: { shares: 'vec4f', v: 'vec4f', groups: 'u32', y: 'rw vec4f' },
  work: ({ groups, heads, dim4 }) => groups * heads * dim4,
  span: () => 64,
  wasm(k, s) {
    const { heads_per_key, dim4 } = s.params;
    const pitch = attentionPitches(s.params);
    eachHead(s, (index, head, { row, rows, origin, position }, first) => {
      k.attentionMix(
        s.at('shares') + index * GROUP_ROWS * pitch.line,
        pitch.line,
        rows,
        s.at('v') + (origin + first) * pitch.key + Math.floor(head / heads_per_key) * pitch.head,
        pitch.key,
        position + rows - first,
        dim4 * 4,
        s.at('y') + row * pitch.row + head * pitch.head,
        pitch.row,
      );
    });
  },
});
