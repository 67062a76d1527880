/** The layout that the attention kernels share. See shaders/lib/attention.wgsl. */
import type { Strip } from '../kernel';

/** Rows of a group at most. */
export const GROUP_ROWS = 4;
/** Words of a group: first row, rows, row of keys where its sequence begins, position of the first row. */
export const GROUP_WORDS = 4;
/** A window for layers that see everything. */
export const NO_WINDOW = 0x7fffffff;
/** Set in a window that is the size of a chunk: rows see keys of their own chunk of positions alone. */
export const CHUNKED = 0x80000000;

export interface AttentionGroup {
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
export function eachHead(
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
export function attentionPitches({
  heads,
  heads_per_key,
  dim4,
  line_width,
}: Readonly<Record<'heads' | 'heads_per_key' | 'dim4' | 'line_width', number>>) {
  const head = dim4 * 16;
  return { head, row: heads * head, key: (heads / heads_per_key) * head, line: line_width * 4 };
}
