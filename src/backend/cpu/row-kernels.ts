/**
 * Softmax, activations, norms and log-sum-exps in WebAssembly. They take a whole dispatch and agree with their twins, which
 * compute in f64, within the tolerance each states in the header of its WGSL. A row has the same bits whatever is beside it.
 */
import { activate } from '../kernels/activate';
import { columnCount, firstKey, GROUP_ROWS } from '../kernels/attention-groups';
import { attentionSoftmaxLine } from '../kernels/attention-softmax';
import { capLogits } from '../kernels/cap-logits';
import { LOG_SUM_SEGMENT, logSum } from '../kernels/log-sum';
import { NORM_CODE, normLine } from '../kernels/norm';
import { eachHead } from './forward-kernels';
import type { StripKernel } from './strips';

/** By kernel id. */
export const ROW_KERNELS: ReadonlyMap<string, StripKernel> = new Map<string, StripKernel>([
  [
    attentionSoftmaxLine.id,
    {
      rows: true,
      run(k, s) {
        const { span, window } = s.params as Record<string, number>;
        eachHead(s, (index, _, group, base) => {
          const columns = columnCount(group, window!);
          for (let i = 0; i < group.rows; i++) {
            const line = s.at('scores') + (index * GROUP_ROWS + i) * span! * 4;
            const position = group.position + i;
            k.softmaxLine(line, columns, firstKey(position, window!) - base, position - base + 1);
          }
        });
      },
    },
  ],
  [
    logSum.id,
    {
      rows: true,
      run(k, s) {
        const { rows, columns, stride, first_column, sums_begin } = s.params as Record<string, number>;
        const segments = Math.ceil(columns! / LOG_SUM_SEGMENT);
        const [logits, sums] = [s.at('logits'), s.at('sums') + sums_begin! * 4];
        const [targets, picked] = [s.at('targets') / 4, s.at('picked') / 4];
        for (let r = 0; r < rows!; r++) {
          const row = logits + r * stride! * 4;
          k.logSumRow(row, columns!, sums + r * segments * 8);
          const wanted = s.words[targets + r]! - first_column!;
          if (wanted >= 0 && wanted < columns!) s.floats[picked + r] = s.floats[row / 4 + wanted]!;
        }
      },
    },
  ],
  [
    activate.id,
    {
      rows: true,
      run(k, s) {
        const { rows, inner, x_stride, y_stride, gated, kind } = s.params as Record<string, number>;
        const [x, y] = [s.at('x'), s.at('y')];
        for (let r = 0; r < rows!; r++) {
          k.activateRow(x + r * x_stride! * 4, y + r * y_stride! * 4, inner!, gated!, kind!);
        }
      },
    },
  ],
  [
    capLogits.id,
    {
      rows: true,
      run(k, s) {
        const { elements, factor, cap } = s.params as Record<string, number>;
        k.capLogits(s.at('x'), elements!, factor!, cap!);
      },
    },
  ],
  [
    normLine.id,
    {
      rows: true,
      run(k, s) {
        const p = s.params as Record<string, number>;
        const [x, weight, y] = [s.at('x') + p.x_begin4! * 16, s.at('weight'), s.at('y')];
        const bias = p.biased === 1 ? s.at('bias') : 0;
        const width = p.width4! * 4;
        const centred = p.kind === NORM_CODE.layer ? 1 : 0;
        const shift = p.kind === NORM_CODE.rms_plus_one ? 1 : 0;
        for (let row = 0; row < p.rows!; row++) {
          for (let part = 0; part < p.groups!; part++) {
            const from = x + (row * p.x_stride4! + part * p.group_stride4!) * 16;
            const to = y + row * p.y_stride4! * 16 + part * width * 4;
            k.normRow(from, weight, bias, to, width, centred, shift, p.epsilon!);
          }
        }
      },
    },
  ],
]);
