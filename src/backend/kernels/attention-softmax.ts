import attentionSinksWgsl from '../../../shaders/attention-sinks.wgsl?raw';
import attentionSoftmaxWgsl from '../../../shaders/attention-softmax.wgsl?raw';
import attentionSoftmaxLineWgsl from '../../../shaders/attention-softmax-line.wgsl?raw';
import { defineKernel } from '../kernel';
import { columnCount, eachHead, firstColumn, firstKey, GROUP_ROWS, groupAt } from './attention-groups';

const define = (id: string, wgsl: string) =>
  defineKernel({
    id,
    wgsl,
    libraries: ['attention', 'softmax'],
    params: { groups: 'u32', group_begin: 'u32', heads: 'u32', line_width: 'u32', window: 'u32' },
    buffers: { groups: 'read', scores: 'read_write' },
    wasm(k, s) {
      const { line_width, window } = s.params;
      eachHead(s, (index, _, group, base) => {
        const columns = columnCount(group, window);
        for (let i = 0; i < group.rows; i++) {
          const line = s.at('scores') + (index * GROUP_ROWS + i) * line_width * 4;
          const position = group.position + i;
          k.softmaxLine(line, columns, firstKey(position, window) - base, position - base + 1);
        }
      });
    },
  });

/** Softmax over the columns each row may see, in place: a workgroup a line. See shaders/attention-softmax.wgsl. */
export const attentionSoftmax = define('attention-softmax', attentionSoftmaxWgsl);
/** The same, an invocation a line. See shaders/attention-softmax-line.wgsl. */
export const attentionSoftmaxLine = define('attention-softmax-line', attentionSoftmaxLineWgsl);

/** Softmax in which a score of each head takes its share and brings no value. See shaders/attention-sinks.wgsl. */
export const attentionSinks = defineKernel({
  id: 'attention-sinks',
  wgsl: attentionSinksWgsl,
  libraries: ['attention', 'softmax'],
  params: { groups: 'u32', group_begin: 'u32', heads: 'u32', line_width: 'u32', window: 'u32' },
  buffers: { groups: 'read', scores: 'read_write', sinks: 'read' },
  cpu({ params, f32, u32 }) {
    const { heads, line_width, window } = params;
    const groups = u32('groups');
    const scores = f32('scores');
    const sinks = f32('sinks');
    for (let index = 0; index < params.groups * heads; index++) {
      const g = groupAt(groups, params.group_begin + Math.floor(index / heads));
      const base = firstColumn(g, window);
      const sink = sinks[index % heads]!;
      for (let i = 0; i < g.rows; i++) {
        const line = (index * 4 + i) * line_width;
        const begin = line + firstKey(g.position + i, window) - base;
        const end = line + g.position + i - base + 1;
        let top = sink;
        for (let at = begin; at < end; at++) if (!(scores[at]! <= top)) top = scores[at]!;
        let sum = Math.exp(sink - top);
        for (let at = begin; at < end; at++) sum += Math.exp(scores[at]! - top);
        scores.fill(0, line, begin);
        for (let at = begin; at < end; at++) scores[at] = Math.exp(scores[at]! - top) / sum;
        scores.fill(0, end, line + columnCount(g, window));
      }
    }
  },
});
