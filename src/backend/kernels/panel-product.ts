import panelProductWgsl from '../../../shaders/panel-product.wgsl?raw';
import panelProductTransposedWgsl from '../../../shaders/panel-product-transposed.wgsl?raw';
import { exact, hasSmall } from '../exact';
import { defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Terms of one chunk of a sum; panels are cut at multiples of it. As in shaders/panel-product*.wgsl. */
export const PANEL_CHUNK = 64;

/** Workgroups of both products, and the work items they stamp: four rows (or columns) of one quad each. */
export function panelWork(outputs: number, k4: number): { groups: number; elements: number } {
  const elements = Math.ceil(outputs / 4) * k4;
  return { groups: Math.ceil(elements / 64), elements };
}

const PARAMS = { first: 'u32', rows: 'u32', cols: 'u32', k4: 'u32', y_row: 'u32' } as const;

/** Y = P·X for a panel of whole rows and a narrow X. See shaders/panel-product.wgsl. */
export const panelProduct = defineKernel({
  id: 'panel-product',
  wgsl: composeWgsl(panelProductWgsl, 'exact4'),
  params: PARAMS,
  buffers: { panel: 'read', x: 'read', y: 'read_write' },
  wasm(k, { params, at }) {
    const { first, rows, cols, k4, y_row } = params;
    const [panel, x] = [at('panel') + first * 4, at('x')];
    const y = at('y') + y_row * k4 * 16;
    k.panelProduct(panel, rows, cols, x, k4, y, k.hasSmall(x, cols * k4 * 4), SCRATCH);
  },
  cpu({ params, f32, u32 }) {
    const { first, rows, cols, k4, y_row } = params;
    const k = 4 * k4;
    const panel = f32('panel');
    const x = f32('x');
    const y = f32('y');
    const round = rounding(u32('panel'), first, rows * cols, u32('x'), 0, cols * k);
    const part = new Float32Array(k);
    for (let r = 0; r < rows; r++) {
      const out = (y_row + r) * k;
      y.fill(0, out, out + k);
      for (let begin = 0; begin < cols; begin += PANEL_CHUNK) {
        const end = Math.min(begin + PANEL_CHUNK, cols);
        part.fill(0);
        for (let j = begin; j < end; j++)
          addScaled(part, 0, panel[first + r * cols + j]!, x, j * k, k, round);
        for (let c = 0; c < k; c++) y[out + c] = exact(y[out + c]! + part[c]!);
      }
    }
  },
});

/** Z += Pᵀ·Y for a panel of whole rows and a narrow Y. See shaders/panel-product-transposed.wgsl. */
export const panelProductTransposed = defineKernel({
  id: 'panel-product-transposed',
  wgsl: composeWgsl(panelProductTransposedWgsl, 'exact4'),
  params: PARAMS,
  buffers: { panel: 'read', y: 'read', z: 'read_write' },
  wasm(k, { params, at }) {
    const { first, rows, cols, k4, y_row } = params;
    const panel = at('panel') + first * 4;
    const y = at('y') + y_row * k4 * 16;
    k.panelProductTransposed(panel, rows, cols, y, k4, at('z'), k.hasSmall(y, rows * k4 * 4), SCRATCH);
  },
  cpu({ params, f32, u32 }) {
    const { first, rows, cols, k4, y_row } = params;
    const k = 4 * k4;
    const panel = f32('panel');
    const y = f32('y');
    const z = f32('z');
    const round = rounding(u32('panel'), first, rows * cols, u32('y'), y_row * k, rows * k);
    // a strip of columns at a time, so that its sums stay near; the order over rows stays the shader's
    const part = new Float32Array(PANEL_CHUNK * k);
    for (let left = 0; left < cols; left += PANEL_CHUNK) {
      const width = Math.min(PANEL_CHUNK, cols - left);
      for (let begin = 0; begin < rows; begin += PANEL_CHUNK) {
        const end = Math.min(begin + PANEL_CHUNK, rows);
        part.fill(0);
        for (let r = begin; r < end; r++) {
          const at = first + r * cols + left;
          for (let j = 0; j < width; j++)
            addScaled(part, j * k, panel[at + j]!, y, (y_row + r) * k, k, round);
        }
        const out = left * k;
        for (let i = 0; i < width * k; i++) z[out + i] = exact(z[out + i]! + part[i]!);
      }
    }
  },
});

/** Products and sums flush subnormals only where there can be any (exact.ts). */
function rounding(
  a: Uint32Array,
  aBegin: number,
  aCount: number,
  b: Uint32Array,
  bBegin: number,
  bCount: number,
): 'exact' | 'plain' {
  return hasSmall(a, aBegin, aCount) || hasSmall(b, bBegin, bCount) ? 'exact' : 'plain';
}

/** sums[at + c] += v · x[from + c] for c below k, every product and sum rounded. */
function addScaled(
  sums: Float32Array,
  at: number,
  v: number,
  x: Float32Array,
  from: number,
  k: number,
  round: 'exact' | 'plain',
): void {
  if (round === 'exact') {
    for (let c = 0; c < k; c++) sums[at + c] = exact(sums[at + c]! + exact(v * x[from + c]!));
    return;
  }
  for (let c = 0; c < k; c++) sums[at + c] = sums[at + c]! + Math.fround(v * x[from + c]!);
}
