import selectThresholdWgsl from '../../../shaders/select-threshold.wgsl?raw';
import { addTo, BLOCK, blockOf, defineKernel } from '../kernel';

/** Trim in place between exact thresholds, ties by lowest flat index. See shaders/select-threshold.wgsl. */
export const selectThreshold = defineKernel({
  id: 'select-threshold',
  wgsl: selectThresholdWgsl,
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
});
