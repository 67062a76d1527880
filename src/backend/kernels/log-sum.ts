import logSumWgsl from '../../../shaders/log-sum.wgsl?raw';
import { defineKernel } from '../kernel';

/** Columns of one partial sum. */
export const LOG_SUM_SEGMENT = 1024;

/** Partial log-sum-exps of logits and the targets' own logits. See shaders/log-sum.wgsl. */
export const logSum = defineKernel({
  id: 'log-sum',
  wgsl: logSumWgsl,
  params: { rows: 'u32', columns: 'u32', stride: 'u32', first_column: 'u32', sums_begin: 'u32' },
  buffers: { logits: 'read', targets: 'read', sums: 'read_write', picked: 'read_write' },
  wasm(k, { params, at, words, floats }) {
    const { rows, columns, stride, first_column, sums_begin } = params;
    const segments = Math.ceil(columns / LOG_SUM_SEGMENT);
    const [logits, sums] = [at('logits'), at('sums') + sums_begin * 4];
    const [targets, picked] = [at('targets') / 4, at('picked') / 4];
    for (let r = 0; r < rows; r++) {
      const row = logits + r * stride * 4;
      k.logSumRow(row, columns, sums + r * segments * 8);
      const wanted = words[targets + r]! - first_column;
      if (wanted >= 0 && wanted < columns) floats[picked + r] = floats[row / 4 + wanted]!;
    }
  },
});
