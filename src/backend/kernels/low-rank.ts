import lowRankWgsl from '../../../shaders/low-rank.wgsl?raw';
import { exact, hasSmall } from '../exact';
import { BLOCK, defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Δ = scale · L·R for a tile of flat elements, stored or added. See shaders/low-rank.wgsl. */
export const lowRank = defineKernel({
  id: 'low-rank',
  wgsl: composeWgsl(lowRankWgsl),
  params: { elements: 'u32', first: 'u32', cols: 'u32', rank: 'u32', slot: 'u32', add: 'u32', scale: 'f32' },
  buffers: { left: 'read', right: 'read', values: 'read_write' },
  unit: () => BLOCK,
  wasm(k, { params, at, size, memo, begin, n }) {
    const { first, cols, rank, slot, add, scale } = params;
    const [left, right] = [at('left'), at('right')];
    memo.small ??= k.hasSmall(left, size('left') / 4) || k.hasSmall(right, size('right') / 4);
    const out = at('values') + (slot + begin) * 4;
    k.lowRank(left, right, cols, rank, out, first + begin, n, scale, add, memo.small, SCRATCH);
  },
  cpu({ params, f32, u32 }) {
    const { elements, first, cols, rank, slot, add } = params;
    const scale = Math.fround(params.scale);
    const left = f32('left');
    const right = f32('right');
    const values = f32('values');
    // one row segment at a time, so that the inner loop runs along columns; the order over k stays the shader's
    const sums = new Float32Array(cols);
    const small = hasSmall(u32('left'), 0, left.length) || hasSmall(u32('right'), 0, right.length);
    const round = small ? exact : Math.fround;
    for (let e = 0; e < elements; ) {
      const row = Math.floor((first + e) / cols);
      const col = first + e - row * cols;
      const n = Math.min(cols - col, elements - e);
      sums.fill(0, 0, n);
      for (let k = 0; k < rank; k++) {
        const l = left[row * rank + k]!;
        const r = k * cols + col;
        for (let c = 0; c < n; c++) sums[c] = round(sums[c]! + round(l * right[r + c]!));
      }
      const out = slot + e;
      if (add === 1)
        for (let c = 0; c < n; c++) values[out + c] = exact(values[out + c]! + exact(sums[c]! * scale));
      else for (let c = 0; c < n; c++) values[out + c] = exact(sums[c]! * scale);
      e += n;
    }
  },
});
