import { defineKernel, SCRATCH } from '../kernel';
import { dtypeBytes } from './decode';

/**
 * Whole rows of stored elements → the blocks of a GGUF tensor (assembly/kernels/encode-blocks.ts), on the processor alone.
 * `type` is ggml's number of the block type, `block_elements` and `block_bytes` are its sizes. `row` holds one row as f32;
 * adds the number of non-finite elements to `status`.
 */
export const encodeBlocks = defineKernel({
  id: 'encode-blocks',
  wgsl: '',
  params: {
    rows: 'u32',
    columns: 'u32',
    dtype: 'u32',
    type: 'u32',
    block_elements: 'u32',
    block_bytes: 'u32',
    weighted: 'u32',
  },
  buffers: {
    raw: 'read',
    importance: 'read',
    row: 'read_write',
    blocks: 'read_write',
    status: 'read_write',
  },
  wasm(k, { params, at, words }) {
    const { rows, columns, dtype, type, block_elements, block_bytes, weighted } = params;
    const importance = weighted === 0 ? 0 : at('importance');
    const rowBytes = (columns / block_elements) * block_bytes;
    let bad = 0;
    for (let row = 0; row < rows; row++) {
      bad += k.decode(at('raw') + row * columns * dtypeBytes(dtype), at('row'), columns, dtype);
      k.encodeBlocks(at('row'), columns, type, importance, at('blocks') + row * rowBytes, SCRATCH);
    }
    words[at('status') / 4]! += bad;
  },
});
