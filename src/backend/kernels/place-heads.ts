import placeHeadsWgsl from '../../../shaders/place-heads.wgsl?raw';
import { defineKernel } from '../kernel';

/** Heads out of a projection's rows, rotated, to their places. See shaders/place-heads.wgsl. */
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
  buffers: { x: 'read', places: 'read', angles: 'read', y: 'read_write' },
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
