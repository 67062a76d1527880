import attentionSoftmaxWgsl from '../../../shaders/attention-softmax.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Softmax over the keys each row may see, in place. See shaders/attention-softmax.wgsl. */
export const attentionSoftmax = defineKernel({
  id: 'attention-softmax',
  wgsl: composeWgsl(attentionSoftmaxWgsl),
  params: { rows: 'u32', row_begin: 'u32', heads: 'u32', span: 'u32', window: 'u32' },
  buffers: { places: 'read', scores: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { rows, heads, span, window } = params;
    const places = u32('places');
    const scores = f32('scores');
    for (let line = 0; line < rows * heads; line++) {
      const position = places[2 * (params.row_begin + Math.floor(line / heads)) + 1]!;
      const begin = line * span;
      const end = begin + Math.min(position + 1, window);
      let top = Number.NEGATIVE_INFINITY;
      for (let at = begin; at < end; at++) if (!(scores[at]! <= top)) top = scores[at]!;
      let sum = 0;
      for (let at = begin; at < end; at++) {
        const share = Math.exp(scores[at]! - top);
        scores[at] = share;
        sum += share;
      }
      for (let at = begin; at < end; at++) scores[at] = scores[at]! / sum;
    }
  },
});
