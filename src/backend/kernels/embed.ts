import embedWgsl from '../../../shaders/embed.wgsl?raw';
import { f16ToF32 } from '../../formats/half';
import { defineKernel } from '../kernel';
import { DTYPE_CODE } from './decode';

/** Rows of a packed table, widened, scaled, stored or added. See shaders/embed.wgsl. */
export const embed = defineKernel({
  id: 'embed',
  wgsl: embedWgsl,
  libraries: ['half'],
  params: {
    rows: 'u32',
    width: 'u32',
    stride: 'u32',
    dtype: 'u32',
    first: 'u32',
    count: 'u32',
    add: 'u32',
    scale: 'f32',
  },
  buffers: { table: 'read', ids: 'read', y: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { rows, width, stride, dtype, first, count, add, scale } = params;
    const words = u32('table');
    const halves = new Uint16Array(words.buffer, words.byteOffset, words.length * 2);
    const floats = f32('table');
    const ids = u32('ids');
    const y = f32('y');
    const bits = new Uint32Array(1);
    const value = new Float32Array(bits.buffer);
    for (let r = 0; r < rows; r++) {
      const id = ids[r]! - first;
      if (id < 0 || id >= count) continue;
      for (let i = 0; i < width; i++) {
        const e = id * width + i;
        if (dtype === DTYPE_CODE.F32) value[0] = floats[e]!;
        else bits[0] = dtype === DTYPE_CODE.BF16 ? halves[e]! << 16 : f16ToF32(halves[e]!);
        const at = r * stride + i;
        y[at] = (add === 1 ? y[at]! : 0) + scale * value[0]!;
      }
    }
  },
});
