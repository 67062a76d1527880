import selectThresholdWgsl from '../../../shaders/select-threshold.wgsl?raw';
import { eachBlock } from '../blocks';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Trim in place at an exact threshold, ties by lowest flat index. See shaders/select-threshold.wgsl. */
export const selectThreshold = defineKernel({
  id: 'select-threshold',
  wgsl: composeWgsl(selectThresholdWgsl),
  params: {
    elements: 'u32',
    slot: 'u32',
    key: 'u32',
    first_block: 'u32',
    cut_block: 'u32',
    cut_quota: 'u32',
    out: 'u32',
  },
  buffers: { values: 'read_write', kept: 'read_write' },
  cpu({ params, u32 }) {
    const { elements, slot, key: threshold, first_block, cut_block, cut_quota, out } = params;
    const values = u32('values');
    let n = 0;
    eachBlock(elements, (begin, end, block) => {
      const number = first_block + block;
      let quota = number < cut_block ? end - begin : number === cut_block ? cut_quota : 0;
      for (let e = slot + begin; e < slot + end; e++) {
        const key = values[e]! & 0x7fffffff;
        if (key > threshold || (key === threshold && quota-- > 0)) n++;
        else values[e] = 0;
      }
    });
    u32('kept')[out]! += n;
  },
});
