import attentionMixWgsl from '../../../shaders/attention-mix.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Values mixed by their shares. See shaders/attention-mix.wgsl. */
export const attentionMix = defineKernel({
  id: 'attention-mix',
  wgsl: composeWgsl(attentionMixWgsl),
  params: {
    rows: 'u32',
    row_begin: 'u32',
    heads: 'u32',
    group: 'u32',
    dim4: 'u32',
    span: 'u32',
    window: 'u32',
  },
  buffers: { shares: 'read', v: 'read', places: 'read', y: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { rows, heads, group, span, window } = params;
    const dim = params.dim4 * 4;
    const stride = (heads / group) * dim;
    const shares = f32('shares');
    const v = f32('v');
    const y = f32('y');
    const places = u32('places');
    const sums = new Float64Array(dim);
    for (let line = 0; line < rows * heads; line++) {
      const head = line % heads;
      const row = params.row_begin + Math.floor(line / heads);
      const count = Math.min(places[2 * row + 1]! + 1, window);
      let value = (places[2 * row]! + 1 - count) * stride + Math.floor(head / group) * dim;
      sums.fill(0);
      let share = line * span;
      const end = share + count;
      for (; share + 4 <= end; share += 4, value += 4 * stride) {
        const s0 = shares[share]!;
        const s1 = shares[share + 1]!;
        const s2 = shares[share + 2]!;
        const s3 = shares[share + 3]!;
        for (let i = 0, at = value; i < dim; i++, at++) {
          sums[i]! +=
            s0 * v[at]! + s1 * v[at + stride]! + s2 * v[at + 2 * stride]! + s3 * v[at + 3 * stride]!;
        }
      }
      for (; share < end; share++, value += stride) {
        for (let i = 0; i < dim; i++) sums[i]! += shares[share]! * v[value + i]!;
      }
      y.set(sums, (row * heads + head) * dim);
    }
  },
});
