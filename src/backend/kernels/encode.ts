import encodeWgsl from '../../../shaders/encode.wgsl?raw';
import {
  addTo,
  BLOCK,
  blockCount,
  blockOf,
  defineKernel,
  type KernelExports,
  SCRATCH,
  type Strip,
} from '../kernel';
import { dtypeBytes } from './decode';

/** Blocks that a workgroup packs; as in shaders/lib/pack.wgsl. */
const PACK_BLOCKS = 4;

/** Workgroups of a kernel that packs `elements` (shaders/lib/pack.wgsl). */
export function packGroups(elements: number): number {
  return Math.ceil(blockCount(elements) / PACK_BLOCKS);
}

/**
 * Merged f32 → output dtype, rounded once; block sums of the squared change to the base; adds the number of non-finite
 * results to status[status]. See shaders/encode.wgsl.
 */
export const encode = defineKernel({
  id: 'encode',
  wgsl: encodeWgsl,
  libraries: ['half', 'exact4', 'pack'],
  params: { elements: 'u32', dtype: 'u32', status: 'u32' },
  buffers: { values: 'read', merged: 'read', packed: 'read_write', sums: 'read_write', status: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { dtype, status } = s.params;
    const merged = s.at('merged') + s.begin * 4;
    k.changeSquares(s.at('values') + s.begin * 4, merged, s.n, s.at('sums') + blockOf(s) * 4, SCRATCH);
    addTo(s, 'status', status, k.encode(merged, s.at('packed') + s.begin * dtypeBytes(dtype), s.n, dtype));
  },
});

/** A block of merged values on their way to the output dtype: in the scratch page, behind what `combine` needs. */
const MERGED = 40 * 1024;

/**
 * Calls `make(at, n, merged)` for every block of a strip, which leaves n merged values at the address `merged`, and packs
 * them. See shaders/lib/pack.wgsl.
 */
export function packBlocks(
  k: KernelExports,
  s: Strip<'dtype' | 'status', 'packed' | 'status'>,
  make: (at: number, n: number, merged: number) => void,
): void {
  const { dtype, status } = s.params;
  let bad = 0;
  for (let at = s.begin; at < s.begin + s.n; at += BLOCK) {
    const n = Math.min(BLOCK, s.begin + s.n - at);
    make(at, n, MERGED);
    bad += k.encode(MERGED, s.at('packed') + at * dtypeBytes(dtype), n, dtype);
  }
  addTo(s, 'status', status, bad);
}
