import columnProductsWgsl from '../../../shaders/products/column-products.wgsl?raw';
import innerProductsWgsl from '../../../shaders/products/inner-products.wgsl?raw';
import inputGramBlock from '../../../shaders/products/input-gram-block.wgsl?raw';
import inputGramTile from '../../../shaders/products/input-gram-tile.wgsl?raw';
import inputSquaresWgsl from '../../../shaders/products/input-squares.wgsl?raw';
import matrixDiagonalWgsl from '../../../shaders/products/matrix-diagonal.wgsl?raw';
import panelProductWgsl from '../../../shaders/products/panel-product.wgsl?raw';
import panelProductTransposedWgsl from '../../../shaders/products/panel-product-transposed.wgsl?raw';
import type { Backend } from '../backend';
import { exact } from '../exact';
import { BLOCK, blockCount, blockOf, defineKernel, SCRATCH } from '../kernel';
import { listSources, SLOTS } from './encoding';

/** Number of pairs i ≤ j of `count` vectors. */
export function pairCount(count: number): number {
  return (count * (count + 1)) / 2;
}

/** Sums of all pairwise products over runs of elements. See shaders/products/inner-products.wgsl. */
export const innerProducts = defineKernel({
  id: 'inner-products',
  wgsl: innerProductsWgsl,
  params: { elements: 'u32', slot: 'u32', stride: 'u32', count: 'u32', run: 'u32' },
  buffers: { values: 'f32', sums: 'rw f32' },
  unit: ({ run }) => run,
  wasm(k, { params, at, begin, n }) {
    const { slot, stride, count, run } = params;
    const sums = at('sums') + (begin / run) * pairCount(count) * 4;
    k.innerProducts(at('values') + (slot + begin) * 4, stride * 4, count, n, run, sums, SCRATCH);
  },
});

/** Words of a window in the list that {@link measureChanges} takes. */
export const WINDOW_WORDS = 6;

/**
 * Measures task vectors as they are stored, on the processor alone, as `decode`, `select-mask` where `masked` is 1,
 * `inner-products`, `absolute-sum` where `norms` is 1, `count-window`, and `histogram` where `binned` is 1 do it one after
 * another; no values are left. Masks of
 * the contributors are `mask_pitch` words apart from word `mask` on. `windows`: slot, lowest and highest key, word of the
 * counts and of the list, room there. What is not finite is counted in `status` where nothing is masked.
 */
export const measureChanges = defineKernel({
  id: 'measure-changes',
  wgsl: '',
  params: {
    elements: 'u32',
    stride: 'u32',
    models: 'u32',
    first_block: 'u32',
    masked: 'u32',
    mask: 'u32',
    mask_pitch: 'u32',
    norms: 'u32',
    windows: 'u32',
    binned: 'u32',
  },
  buffers: {
    raw: 'u32',
    inputs: 'u32',
    values: 'u32',
    masks: 'u32',
    windows: 'u32',
    counts: 'rw u32',
    list: 'rw u32',
    bins: 'rw u32',
    sums: 'rw f32',
    norms: 'rw f32',
    status: 'rw u32',
  },
  unit: () => BLOCK,
  wasm(k, s) {
    const { elements, stride, models, first_block, masked, mask, mask_pitch, norms, windows, binned } =
      s.params;
    k.measureChanges(
      listSources(s, models + 1, { values: s.at('values'), stride }),
      models,
      s.n,
      first_block + blockOf(s),
      masked ? s.at('masks') + (mask + s.begin / 32) * 4 : 0,
      mask_pitch * 4,
      s.at('windows'),
      windows,
      s.at('counts'),
      s.at('list'),
      binned ? s.at('bins') : 0,
      s.at('sums') + blockOf(s) * pairCount(models + 1) * 4,
      norms ? s.at('norms') + blockOf(s) * 4 : 0,
      blockCount(elements) * 4,
      masked ? UNCOUNTED : s.at('status'),
      SLOTS,
      SCRATCH,
    );
  },
});

/** Words of the scratch that take counts nobody asks for. */
const UNCOUNTED = SCRATCH + 192;

/** Rows of one partial sum; as in shaders/products/column-products.wgsl. */
export const COLUMN_ROWS = 64;

/** Workgroups that cover a matrix of `rows` × `cols`. */
export function columnGroups(rows: number, cols: number): number {
  return Math.ceil(rows / COLUMN_ROWS) * Math.ceil(cols / 64);
}

/** Products column by column over blocks of 64 rows. See shaders/products/column-products.wgsl. */
export const columnProducts = defineKernel({
  id: 'column-products',
  wgsl: columnProductsWgsl,
  params: { elements: 'u32', slot: 'u32', stride: 'u32', count: 'u32', cols: 'u32' },
  buffers: { values: 'f32', sums: 'rw f32' },
  cpu({ params, f32 }) {
    const { elements, slot, stride, count, cols } = params;
    const values = f32('values');
    const sums = f32('sums');
    const rows = elements / cols;
    const pairs = pairCount(count);
    for (let begin = 0, block = 0; begin < rows; begin += COLUMN_ROWS, block++) {
      const end = Math.min(begin + COLUMN_ROWS, rows);
      let p = 0;
      for (let i = 0; i < count; i++) {
        for (let j = i; j < count; j++) {
          const out = (block * pairs + p++) * cols;
          sums.fill(0, out, out + cols);
          for (let row = begin; row < end; row++) {
            const a = slot + row * cols + i * stride;
            const b = slot + row * cols + j * stride;
            for (let c = 0; c < cols; c++) {
              sums[out + c] = exact(sums[out + c]! + exact(values[a + c]! * values[b + c]!));
            }
          }
        }
      }
    }
  },
});

/** Terms of one chunk of a sum; panels are cut at multiples of it. As in shaders/panel-product*.wgsl. */
export const PANEL_CHUNK = 64;

const PARAMS = { first: 'u32', rows: 'u32', cols: 'u32', k4: 'u32', y_row: 'u32' } as const;

/** Y = P·X for a panel of whole rows and a narrow X. See shaders/products/panel-product.wgsl. */
export const panelProduct = defineKernel({
  id: 'panel-product',
  wgsl: panelProductWgsl,
  libraries: ['exact4'],
  params: PARAMS,
  buffers: { panel: 'f32', x: 'vec4f', y: 'rw vec4f' },
  work: ({ rows, k4 }) => Math.ceil(rows / 4) * k4,
  span: () => 64,
  wasm(k, { params, at }) {
    const { first, rows, cols, k4, y_row } = params;
    const [panel, x] = [at('panel') + first * 4, at('x')];
    const y = at('y') + y_row * k4 * 16;
    k.panelProduct(panel, rows, cols, x, k4, y, k.hasSmall(x, cols * k4 * 4), SCRATCH);
  },
});

/** Z += Pᵀ·Y for a panel of whole rows and a narrow Y. See shaders/products/panel-product-transposed.wgsl. */
export const panelProductTransposed = defineKernel({
  id: 'panel-product-transposed',
  wgsl: panelProductTransposedWgsl,
  libraries: ['exact4'],
  params: PARAMS,
  buffers: { panel: 'f32', y: 'vec4f', z: 'rw vec4f' },
  work: ({ cols, k4 }) => Math.ceil(cols / 4) * k4,
  span: () => 64,
  wasm(k, { params, at }) {
    const { first, rows, cols, k4, y_row } = params;
    const panel = at('panel') + first * 4;
    const y = at('y') + y_row * k4 * 16;
    k.panelProductTransposed(panel, rows, cols, y, k4, at('z'), k.hasSmall(y, rows * k4 * 4), SCRATCH);
  },
});

/** Most rows that a dispatch sums before it folds them into S. */
export const GRAM_ROWS = 2048;
/** The same where the processor does it: so many rows of two tiles stay in its first cache. */
const SOFTWARE_ROWS = 512;

const DECLARATION = {
  params: { rows: 'u32', first: 'u32', stride4: 'u32', begin4: 'u32', width4: 'u32', first_tile: 'u32' },
  buffers: { x: 'vec4f', s: 'rw vec4f' },
} as const;

/** S += x xᵀ in both forms; tiles are for real GPUs. See shaders/lib/input-gram.wgsl. */
export const inputGram = {
  block: defineKernel({
    ...DECLARATION,
    id: 'input-gram-block',
    wgsl: inputGramBlock,
    libraries: ['inputGram'],
    wasm(k, { params, at, n }) {
      const { rows, first, stride4, begin4, width4, first_tile } = params;
      const x = at('x') + (first * stride4 + begin4) * 16;
      k.inputGram(x, stride4 * 16, rows, width4 * 4, at('s'), first_tile, first_tile + n, SCRATCH);
    },
  }),
  tile: defineKernel({
    ...DECLARATION,
    id: 'input-gram-tile',
    wgsl: inputGramTile,
    libraries: ['inputGram'],
  }),
};

type InputGramForm = keyof typeof inputGram;

/** The form for this engine, the width of its tiles in fours, the tiles of one workgroup, and the rows of one dispatch. */
export function inputGramForm(engine: Pick<Backend, 'software'>): {
  form: InputGramForm;
  side4: number;
  perGroup: number;
  rows: number;
} {
  return engine.software
    ? { form: 'block', side4: 2, perGroup: 64, rows: SOFTWARE_ROWS }
    : { form: 'tile', side4: 16, perGroup: 1, rows: GRAM_ROWS };
}

/** squares += Σ x², column by column. See shaders/products/input-squares.wgsl. */
export const inputSquares = defineKernel({
  id: 'input-squares',
  wgsl: inputSquaresWgsl,
  params: { rows: 'u32', first: 'u32', stride4: 'u32', width4: 'u32' },
  buffers: { x: 'vec4f', squares: 'rw vec4f' },
  work: ({ width4 }) => width4,
  span: () => 64,
  cpu({ params, f32 }) {
    const { rows, first, stride4, width4 } = params;
    const x = f32('x');
    const squares = f32('squares');
    const sums = new Float64Array(4 * width4);
    for (let r = first; r < first + rows; r++) {
      for (let c = 0; c < 4 * width4; c++) sums[c]! += x[r * 4 * stride4 + c]! ** 2;
    }
    for (const [c, sum] of sums.entries()) squares[c]! += sum;
  },
});

/** The diagonal of a square matrix. See shaders/products/matrix-diagonal.wgsl. */
export const matrixDiagonal = defineKernel({
  id: 'matrix-diagonal',
  wgsl: matrixDiagonalWgsl,
  params: { width: 'u32', out: 'u32' },
  buffers: { m: 'f32', diagonal: 'rw f32' },
  work: ({ width }) => width,
  span: () => 64,
  cpu({ params, f32 }) {
    const { width, out } = params;
    const m = f32('m');
    const diagonal = f32('diagonal');
    for (let j = 0; j < width; j++) diagonal[out + j] = m[j * (width + 1)]!;
  },
});
