import encodeWgsl from '../../../shaders/encode.wgsl?raw';
import { f32ToBf16, f32ToF16 } from '../../formats/half';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';
import { DTYPE_CODE } from './decode';

/** f32 → output dtype, rounded once; adds the number of non-finite results to status[status]. See shaders/encode.wgsl. */
export const encode = defineKernel({
  id: 'encode',
  wgsl: composeWgsl(encodeWgsl, 'half'),
  params: { elements: 'u32', dtype: 'u32', values_begin: 'u32', status: 'u32' },
  buffers: { values: 'read', packed: 'read_write', status: 'read_write' },
  cpu({ params, u32 }) {
    const { elements, dtype, values_begin: begin } = params;
    const values = u32('values');
    const packed = u32('packed');
    const status = u32('status');
    let bad = 0;
    if (dtype === DTYPE_CODE.F32) {
      for (let e = 0; e < elements; e++) {
        const bits = canonical(values[begin + e]!);
        if ((bits & 0x7f800000) === 0x7f800000) bad++;
        packed[e] = bits;
      }
    } else {
      const halves = new Uint16Array(packed.buffer, packed.byteOffset, packed.length * 2);
      const narrow = dtype === DTYPE_CODE.BF16 ? f32ToBf16 : f32ToF16;
      const special = dtype === DTYPE_CODE.BF16 ? 0x7f80 : 0x7c00;
      for (let e = 0; e < elements; e++) {
        const h = narrow(canonical(values[begin + e]!));
        if ((h & special) === special) bad++;
        halves[e] = h;
      }
      if (elements % 2 === 1) halves[elements] = 0;
    }
    status[params.status]! += bad;
  },
});

/** One NaN for all: which NaN an operation makes differs between devices. */
function canonical(bits: number): number {
  return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits;
}
