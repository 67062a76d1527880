import panelProductWgsl from '../../../shaders/panel-product.wgsl?raw';
import panelProductTransposedWgsl from '../../../shaders/panel-product-transposed.wgsl?raw';
import { defineKernel, SCRATCH } from '../kernel';

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
  wgsl: panelProductWgsl,
  libraries: ['exact4'],
  params: PARAMS,
  buffers: { panel: 'read', x: 'read', y: 'read_write' },
  wasm(k, { params, at }) {
    const { first, rows, cols, k4, y_row } = params;
    const [panel, x] = [at('panel') + first * 4, at('x')];
    const y = at('y') + y_row * k4 * 16;
    k.panelProduct(panel, rows, cols, x, k4, y, k.hasSmall(x, cols * k4 * 4), SCRATCH);
  },
});

/** Z += Pᵀ·Y for a panel of whole rows and a narrow Y. See shaders/panel-product-transposed.wgsl. */
export const panelProductTransposed = defineKernel({
  id: 'panel-product-transposed',
  wgsl: panelProductTransposedWgsl,
  libraries: ['exact4'],
  params: PARAMS,
  buffers: { panel: 'read', y: 'read', z: 'read_write' },
  wasm(k, { params, at }) {
    const { first, rows, cols, k4, y_row } = params;
    const panel = at('panel') + first * 4;
    const y = at('y') + y_row * k4 * 16;
    k.panelProductTransposed(panel, rows, cols, y, k4, at('z'), k.hasSmall(y, rows * k4 * 4), SCRATCH);
  },
});
