import attentionScoresWgsl from '../../../shaders/attention-scores.wgsl?raw';
import { defineKernel } from '../kernel';
import { softCap } from '../special';
import { composeWgsl } from '../wgsl';

/** Scores of the keys each row may see. See shaders/attention-scores.wgsl. */
export const attentionScores = defineKernel({
  id: 'attention-scores',
  wgsl: composeWgsl(attentionScoresWgsl, 'special'),
  params: {
    rows: 'u32',
    row_begin: 'u32',
    heads: 'u32',
    group: 'u32',
    dim4: 'u32',
    span: 'u32',
    window: 'u32',
    sloped: 'u32',
    scale: 'f32',
    cap: 'f32',
  },
  buffers: { q: 'read', k: 'read', places: 'read', slopes: 'read', scores: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { rows, heads, group, span, window, sloped, scale, cap } = params;
    const dim = params.dim4 * 4;
    const stride = (heads / group) * dim;
    const q = f32('q');
    const k = f32('k');
    const slopes = f32('slopes');
    const scores = f32('scores');
    const places = u32('places');
    for (let line = 0; line < rows * heads; line++) {
      const head = line % heads;
      const row = params.row_begin + Math.floor(line / heads);
      const position = places[2 * row + 1]!;
      const first = Math.max(0, position + 1 - window);
      const query = (row * heads + head) * dim;
      let key = (places[2 * row]! - position + first) * stride + Math.floor(head / group) * dim;
      const finish = (sum: number, j: number) => {
        const bias = sloped === 1 ? slopes[head]! * j : 0;
        scores[line * span + j - first] = softCap(sum * scale, cap) + bias;
      };
      let j = first;
      // four keys share each element of the query
      for (; j + 3 <= position; j += 4, key += 4 * stride) {
        let [s0, s1, s2, s3] = [0, 0, 0, 0];
        for (let i = 0; i < dim; i++) {
          const x = q[query + i]!;
          s0 += x * k[key + i]!;
          s1 += x * k[key + stride + i]!;
          s2 += x * k[key + 2 * stride + i]!;
          s3 += x * k[key + 3 * stride + i]!;
        }
        finish(s0, j);
        finish(s1, j + 1);
        finish(s2, j + 2);
        finish(s3, j + 3);
      }
      for (; j <= position; j++, key += stride) {
        let sum = 0;
        for (let i = 0; i < dim; i++) sum += q[query + i]! * k[key + i]!;
        finish(sum, j);
      }
    }
  },
});
