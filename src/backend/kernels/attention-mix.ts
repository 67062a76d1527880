import attentionMixWgsl from '../../../shaders/attention-mix.wgsl?raw';
import { defineKernel } from '../kernel';
import { attentionPitches, eachHead, GROUP_ROWS } from './attention-groups';

/** Values mixed by their shares. See shaders/attention-mix.wgsl. */
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
  buffers: { shares: 'read', v: 'read', groups: 'read', y: 'read_write' },
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
