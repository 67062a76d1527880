import attentionMixWgsl from '../../../shaders/attention-mix.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';
import {
  attentionPitches,
  columnCount,
  eachHead,
  firstColumn,
  GROUP_ROWS,
  groupAt,
} from './attention-groups';

/** Values mixed by their shares. See shaders/attention-mix.wgsl. */
export const attentionMix = defineKernel({
  id: 'attention-mix',
  wgsl: composeWgsl(attentionMixWgsl, 'attention'),
  params: {
    groups: 'u32',
    group_begin: 'u32',
    heads: 'u32',
    share: 'u32',
    dim4: 'u32',
    span: 'u32',
    window: 'u32',
  },
  buffers: { shares: 'read', v: 'read', groups: 'read', y: 'read_write' },
  wasm(k, s) {
    const { share, dim4 } = s.params;
    const pitch = attentionPitches(s.params);
    eachHead(s, (index, head, { row, rows, origin, position }, first) => {
      k.attentionMix(
        s.at('shares') + index * GROUP_ROWS * pitch.line,
        pitch.line,
        rows,
        s.at('v') + (origin + first) * pitch.key + Math.floor(head / share) * pitch.head,
        pitch.key,
        position + rows - first,
        dim4 * 4,
        s.at('y') + row * pitch.row + head * pitch.head,
        pitch.row,
      );
    });
  },
  cpu({ params, f32, u32 }) {
    const { heads, share, span, window } = params;
    const dim = params.dim4 * 4;
    const stride = (heads / share) * dim;
    const shares = f32('shares');
    const v = f32('v');
    const y = f32('y');
    const groups = u32('groups');
    const sums = new Float64Array(dim);
    for (let index = 0; index < params.groups * heads; index++) {
      const head = index % heads;
      const g = groupAt(groups, params.group_begin + Math.floor(index / heads));
      const base = firstColumn(g, window);
      const columns = columnCount(g, window);
      const last = g.position + g.rows - 1;
      const at = (column: number) =>
        (g.origin + Math.min(base + column, last)) * stride + Math.floor(head / share) * dim;
      for (let i = 0; i < g.rows; i++) {
        const line = (index * 4 + i) * span;
        sums.fill(0);
        for (let c = 0; c < columns; c += 4) {
          const [v0, v1, v2, v3] = [at(c), at(c + 1), at(c + 2), at(c + 3)];
          const s0 = shares[line + c]!;
          const s1 = shares[line + c + 1]!;
          const s2 = shares[line + c + 2]!;
          const s3 = shares[line + c + 3]!;
          for (let d = 0; d < dim; d++) {
            sums[d]! += s0 * v[v0 + d]! + s1 * v[v1 + d]! + s2 * v[v2 + d]! + s3 * v[v3 + d]!;
          }
        }
        y.set(sums, ((g.row + i) * heads + head) * dim);
      }
    }
  },
});
