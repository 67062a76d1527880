import encodeWgsl from '../../../shaders/encode.wgsl?raw';
import { f32ToBf16, f32ToF16 } from '../../formats/half';
import { dotBlock, eachBlock } from '../blocks';
import { exact, hasSmall } from '../exact';
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
import { composeWgsl } from '../wgsl';
import { DTYPE_CODE, dtypeBytes } from './decode';

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
  wgsl: composeWgsl(encodeWgsl, 'half', 'exact4', 'pack'),
  params: { elements: 'u32', dtype: 'u32', status: 'u32' },
  buffers: { values: 'read', merged: 'read', packed: 'read_write', sums: 'read_write', status: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { dtype, status } = s.params;
    const merged = s.at('merged') + s.begin * 4;
    k.changeSquares(s.at('values') + s.begin * 4, merged, s.n, s.at('sums') + blockOf(s) * 4, SCRATCH);
    addTo(s, 'status', status, k.encode(merged, s.at('packed') + s.begin * dtypeBytes(dtype), s.n, dtype));
  },
  cpu({ params, u32, f32 }) {
    const { elements, dtype } = params;
    changeSquares(f32('values'), f32('merged'), elements, f32('sums'));
    u32('status')[params.status]! += packWords(u32('merged'), elements, dtype, u32('packed'));
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

/** The twin of `pack4` in shaders/lib/pack.wgsl for a whole tile; returns how many results are not finite. */
export function packWords(values: Uint32Array, elements: number, dtype: number, packed: Uint32Array): number {
  let bad = 0;
  if (dtype === DTYPE_CODE.F32) {
    for (let e = 0; e < elements; e++) {
      const bits = canonical(values[e]!);
      if ((bits & 0x7f800000) === 0x7f800000) bad++;
      packed[e] = bits;
    }
    return bad;
  }
  const halves = new Uint16Array(packed.buffer, packed.byteOffset, packed.length * 2);
  const narrow = dtype === DTYPE_CODE.BF16 ? f32ToBf16 : f32ToF16;
  const special = dtype === DTYPE_CODE.BF16 ? 0x7f80 : 0x7c00;
  for (let e = 0; e < elements; e++) {
    const h = narrow(canonical(values[e]!));
    if ((h & special) === special) bad++;
    halves[e] = h;
  }
  if (elements % 2 === 1) halves[elements] = 0;
  return bad;
}

/** Block sums of (merged − base)². */
export function changeSquares(
  base: Float32Array,
  merged: Float32Array,
  elements: number,
  sums: Float32Array,
): void {
  const change = new Float32Array(BLOCK);
  const words = new Uint32Array(change.buffer);
  eachBlock(elements, (begin, end, block) => {
    const n = end - begin;
    for (let e = 0; e < n; e++) change[e] = exact(merged[begin + e]! - base[begin + e]!);
    sums[block] = dotBlock(change, 0, 0, n, hasSmall(words, 0, n));
  });
}

/** One NaN for all: which NaN an operation makes differs between devices. */
function canonical(bits: number): number {
  return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits;
}
