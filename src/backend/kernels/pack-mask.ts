import packMaskWgsl from '../../../shaders/pack-mask.wgsl?raw';
import { defineKernel } from '../kernel';

/** Words of one row of a packed mask: bit c mod 32 of word ⌊c/32⌋ is column c. */
export function maskRowWords(cols: number): number {
  return Math.ceil(cols / 32);
}

/** One bit per entry: whether its key is left. See shaders/pack-mask.wgsl. */
export const packMask = defineKernel({
  id: 'pack-mask',
  wgsl: packMaskWgsl,
  params: { rows: 'u32', cols: 'u32', block: 'u32' },
  buffers: { keys: 'read', mask: 'read_write' },
  cpu({ params, u32 }) {
    const { rows, cols, block } = params;
    const keys = u32('keys');
    const mask = u32('mask');
    const rowWords = maskRowWords(cols);
    mask.fill(0, 0, rows * rowWords);
    let at = 0;
    for (let first = 0; first < cols; first += block) {
      const end = Math.min(first + block, cols);
      for (let r = 0; r < rows; r++) {
        for (let c = first; c < end; c++) {
          if (keys[at++]! !== 0) mask[r * rowWords + (c >>> 5)]! |= 1 << (c & 31);
        }
      }
    }
  },
});
