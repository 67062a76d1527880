import attentionScoresWgsl from '../../../shaders/attention-scores.wgsl?raw';
import { defineKernel } from '../kernel';
import { attentionPitches, eachHead, GROUP_ROWS } from './attention-groups';

/** Scores of the columns each group sees. See shaders/attention-scores.wgsl. */
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
  buffers: { q: 'read', k: 'read', groups: 'read', slopes: 'read', scores: 'read_write' },
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
