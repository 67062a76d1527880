import decodeWgsl from '../../../shaders/decode.wgsl?raw';
import { f16ToF32 } from '../../formats/half';
import { flushBits } from '../exact';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Codes of shaders/lib/half.wgsl. */
export const DTYPE_CODE = { F32: 0, F16: 1, BF16: 2 } as const;

/** Stored words → f32, subnormals as zeros; adds the number of non-finite elements to status[status]. See shaders/decode.wgsl. */
export const decode = defineKernel({
  id: 'decode',
  wgsl: composeWgsl(decodeWgsl, 'half'),
  params: { elements: 'u32', dtype: 'u32', raw_begin: 'u32', out: 'u32', status: 'u32' },
  buffers: { raw: 'read', values: 'read_write', status: 'read_write' },
  cpu({ params, u32 }) {
    const { elements, dtype, raw_begin, out } = params;
    const values = u32('values');
    const status = u32('status');
    let bad = 0;
    if (dtype === DTYPE_CODE.F32) {
      values.set(u32('raw').subarray(raw_begin, raw_begin + elements), out);
    } else {
      const raw = u32('raw');
      const halves = new Uint16Array(raw.buffer, raw.byteOffset + raw_begin * 4, elements);
      if (dtype === DTYPE_CODE.BF16) {
        for (let e = 0; e < elements; e++) values[out + e] = halves[e]! << 16;
      } else {
        for (let e = 0; e < elements; e++) values[out + e] = f16ToF32(halves[e]!);
      }
    }
    for (let e = out; e < out + elements; e++) {
      const bits = values[e]!;
      if ((bits & 0x7f800000) === 0x7f800000) bad++;
      values[e] = flushBits(bits);
    }
    status[params.status]! += bad;
  },
});
