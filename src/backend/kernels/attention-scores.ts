import attentionScoresWgsl from '../../../shaders/attention-scores.wgsl?raw';
import { defineKernel } from '../kernel';
import { softCap } from '../special';
import { composeWgsl } from '../wgsl';
import {
  attentionPitches,
  columnCount,
  eachHead,
  firstColumn,
  GROUP_ROWS,
  groupAt,
} from './attention-groups';

/** Scores of the columns each group sees. See shaders/attention-scores.wgsl. */
export const attentionScores = defineKernel({
  id: 'attention-scores',
  wgsl: composeWgsl(attentionScoresWgsl, 'attention', 'special'),
  params: {
    groups: 'u32',
    group_begin: 'u32',
    heads: 'u32',
    share: 'u32',
    dim4: 'u32',
    span: 'u32',
    window: 'u32',
    sloped: 'u32',
    scale: 'f32',
    cap: 'f32',
  },
  buffers: { q: 'read', k: 'read', groups: 'read', slopes: 'read', scores: 'read_write' },
  wasm(k, s) {
    const { share, dim4, sloped, scale, cap } = s.params;
    const pitch = attentionPitches(s.params);
    eachHead(s, (index, head, { row, rows, origin, position }, first) => {
      k.attentionScores(
        s.at('q') + row * pitch.row + head * pitch.head,
        pitch.row,
        rows,
        s.at('k') + (origin + first) * pitch.key + Math.floor(head / share) * pitch.head,
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
  cpu({ params, f32, u32 }) {
    const { heads, share, span, window, sloped, scale, cap } = params;
    const dim = params.dim4 * 4;
    const stride = (heads / share) * dim;
    const q = f32('q');
    const k = f32('k');
    const slopes = f32('slopes');
    const scores = f32('scores');
    const groups = u32('groups');
    for (let index = 0; index < params.groups * heads; index++) {
      const head = index % heads;
      const g = groupAt(groups, params.group_begin + Math.floor(index / heads));
      const base = firstColumn(g, window);
      const columns = columnCount(g, window);
      const last = g.position + g.rows - 1;
      const slope = sloped === 1 ? slopes[head]! : 0;
      const at = (column: number) =>
        (g.origin + Math.min(base + column, last)) * stride + Math.floor(head / share) * dim;
      for (let i = 0; i < g.rows; i++) {
        const query = ((g.row + i) * heads + head) * dim;
        const line = (index * 4 + i) * span;
        // four keys share each element of the query
        for (let c = 0; c < columns; c += 4) {
          const [k0, k1, k2, k3] = [at(c), at(c + 1), at(c + 2), at(c + 3)];
          let [s0, s1, s2, s3] = [0, 0, 0, 0];
          for (let d = 0; d < dim; d++) {
            const x = q[query + d]!;
            s0 += x * k[k0 + d]!;
            s1 += x * k[k1 + d]!;
            s2 += x * k[k2 + d]!;
            s3 += x * k[k3 + d]!;
          }
          scores[line + c] = softCap(s0 * scale, cap) + slope * (base + c);
          scores[line + c + 1] = softCap(s1 * scale, cap) + slope * (base + c + 1);
          scores[line + c + 2] = softCap(s2 * scale, cap) + slope * (base + c + 2);
          scores[line + c + 3] = softCap(s3 * scale, cap) + slope * (base + c + 3);
        }
      }
    }
  },
});
