import placeHeadsWgsl from '../../../shaders/place-heads.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Heads out of a projection's rows, rotated, to their places. See shaders/place-heads.wgsl. */
export const placeHeads = defineKernel({
  id: 'place-heads',
  wgsl: composeWgsl(placeHeadsWgsl),
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
  buffers: { x: 'read', places: 'read', angles: 'read', y: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { rows, heads, head_dim, half, group } = params;
    const x = f32('x');
    const y = f32('y');
    const angles = f32('angles');
    const places = u32('places');
    // from one pair to the next, and from the first of a pair to the second
    const [pair, other] = params.adjacent === 1 ? [2, 1] : [1, half];
    for (let r = 0; r < rows; r++) {
      const row = params.keep_rows === 1 ? r : places[2 * r]!;
      const table = places[2 * r + 1]! * 2 * half;
      for (let h = 0; h < heads; h++) {
        const inGroups = Math.floor(h / group) * params.group_stride + (h % group) * params.head_stride;
        const from = params.x_begin + r * params.x_stride + inGroups;
        const to = row * params.y_stride + params.y_begin + h * params.y_dim;
        for (let i = 0; i < half; i++) {
          const cos = angles[table + i]!;
          const sin = angles[table + half + i]!;
          const at = i * pair;
          y[to + at] = x[from + at]! * cos - x[from + other + at]! * sin;
          y[to + other + at] = x[from + other + at]! * cos + x[from + at]! * sin;
        }
        for (let i = 2 * half; i < head_dim; i++) y[to + i] = x[from + i]!;
      }
    }
  },
});
