import selectThresholdWgsl from '../../../shaders/select-threshold.wgsl?raw';
import { eachBlock } from '../blocks';
import { addTo, BLOCK, blockOf, defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Trim in place between exact thresholds, ties by lowest flat index. See shaders/select-threshold.wgsl. */
export const selectThreshold = defineKernel({
  id: 'select-threshold',
  wgsl: composeWgsl(selectThresholdWgsl),
  params: {
    elements: 'u32',
    slot: 'u32',
    first_block: 'u32',
    key: 'u32',
    cut_block: 'u32',
    cut_quota: 'u32',
    inner_key: 'u32',
    inner_cut_block: 'u32',
    inner_cut_quota: 'u32',
    out: 'u32',
  },
  buffers: { values: 'read_write', kept: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const p = s.params;
    const kept = k.selectThreshold(
      s.at('values') + (p.slot + s.begin) * 4,
      s.n,
      p.first_block + blockOf(s),
      p.key,
      p.cut_block,
      p.cut_quota,
      p.inner_key,
      p.inner_cut_block,
      p.inner_cut_quota,
    );
    addTo(s, 'kept', p.out, kept);
  },
  cpu({ params, u32 }) {
    const { elements, slot, first_block, key: outerKey, inner_key: innerKey, out } = params;
    const values = u32('values');
    let n = 0;
    eachBlock(elements, (begin, end, block) => {
      const number = first_block + block;
      const quotaOf = (cut: number, quota: number) =>
        number < cut ? end - begin : number === cut ? quota : 0;
      let outerQuota = quotaOf(params.cut_block, params.cut_quota);
      let innerQuota = quotaOf(params.inner_cut_block, params.inner_cut_quota);
      for (let e = slot + begin; e < slot + end; e++) {
        const key = values[e]! & 0x7fffffff;
        const outer = key > outerKey || (key === outerKey && outerQuota-- > 0);
        const inner = key > innerKey || (key === innerKey && innerQuota-- > 0);
        if (outer && !inner) n++;
        else values[e] = 0;
      }
    });
    u32('kept')[out]! += n;
  },
});
