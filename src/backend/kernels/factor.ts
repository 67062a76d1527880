import addDampedWgsl from '../../../shaders/factor/add-damped.wgsl?raw';
import choleskyTileWgsl from '../../../shaders/factor/cholesky-tile.wgsl?raw';
import panelWgsl from '../../../shaders/factor/triangular-panel.wgsl?raw';
import tileWgsl from '../../../shaders/factor/triangular-tile.wgsl?raw';
import { type CpuRun, defineKernel } from '../kernel';

/** Columns of one step. */
export const TRIANGULAR_TILE = 32;

const PARAMS = { rows: 'u32', first_row: 'u32', width4: 'u32', column4: 'u32', unit: 'u32' } as const;
type Params = keyof typeof PARAMS;
const OWN = { factor: 'rw vec4f' } as const;
const OTHER = { factor: 'vec4f', x: 'rw vec4f' } as const;

/** Kernel: 32 columns less what the columns before them contribute. See shaders/factor/triangular-panel.wgsl. */
export const triangularPanel = {
  own: defineKernel({
    id: 'triangular-panel-own',
    wgsl: panelWgsl,
    libraries: ['triangular', 'factorOwn'],
    params: PARAMS,
    buffers: OWN,
    work: panelBlocks,
    span: () => 64,
    cpu: (run) => panel(run, run.f32('factor')),
  }),
  other: defineKernel({
    id: 'triangular-panel-other',
    wgsl: panelWgsl,
    libraries: ['triangular', 'factorOther'],
    params: PARAMS,
    buffers: OTHER,
    work: panelBlocks,
    span: () => 64,
    cpu: (run) => panel(run, run.f32('x')),
  }),
};

/** 32 columns against the factored tile. See shaders/factor/triangular-tile.wgsl. */
export const triangularTile = {
  own: defineKernel({
    id: 'triangular-tile-own',
    wgsl: tileWgsl,
    libraries: ['triangular', 'factorOwn'],
    params: PARAMS,
    buffers: OWN,
    work: ({ rows }) => rows,
    span: () => 64,
    cpu: (run) => tile(run, run.f32('factor')),
  }),
  other: defineKernel({
    id: 'triangular-tile-other',
    wgsl: tileWgsl,
    libraries: ['triangular', 'factorOther'],
    params: PARAMS,
    buffers: OTHER,
    work: ({ rows }) => rows,
    span: () => 64,
    cpu: (run) => tile(run, run.f32('x')),
  }),
};

/** Invocations of a panel step. */
export function panelBlocks({
  rows,
  width4,
  column4,
}: Pick<Readonly<Record<Params, number>>, 'rows' | 'width4' | 'column4'>): number {
  return Math.ceil(rows / 4) * Math.min(8, width4 - column4);
}

/** The factor of the tile on the diagonal. See shaders/factor/cholesky-tile.wgsl. */
export const choleskyTile = defineKernel({
  id: 'cholesky-tile',
  wgsl: choleskyTileWgsl,
  params: { width: 'u32', column: 'u32', floor: 'f32' },
  buffers: { factor: 'rw f32', failed: 'rw u32' },
  work: () => 1,
  cpu({ params, f32, u32 }) {
    const { width, column, floor } = params;
    const l = f32('factor');
    const failed = u32('failed');
    const end = Math.min(column + TRIANGULAR_TILE, width);
    for (let k = column; k < end; k++) {
      let pivot = l[k * width + k]!;
      for (let p = column; p < k; p++) pivot -= l[k * width + p]! ** 2;
      if (!(pivot >= floor && pivot < Number.POSITIVE_INFINITY)) {
        pivot = 1;
        if (failed[0] === 0) failed[0] = k + 1;
      }
      const root = Math.sqrt(pivot);
      l[k * width + k] = root;
      for (let r = k + 1; r < end; r++) {
        let v = l[r * width + k]!;
        for (let p = column; p < k; p++) v -= l[r * width + p]! * l[k * width + p]!;
        l[r * width + k] = v / root;
      }
      l.fill(0, k * width + k + 1, k * width + end);
    }
  },
});

/** Sums in f64, over four columns at a time. */
function panel({ params, f32 }: CpuRun<Params, 'factor'>, x: Float32Array): void {
  const { rows, first_row, column4, unit } = params;
  const width = 4 * params.width4;
  const column = 4 * column4;
  const l = f32('factor');
  const end = Math.min(column + TRIANGULAR_TILE, width);
  for (let r = first_row; r < first_row + rows; r++) {
    const at = r * width;
    const from = unit === 1 ? r - (r % 4) : 0;
    for (let c = column; c < end; c += 4) {
      const [a, b] = [c * width, (c + 1) * width];
      const [d, e] = [b + width, b + 2 * width];
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      for (let k = from; k < column; k++) {
        const v = x[at + k]!;
        s0 += v * l[a + k]!;
        s1 += v * l[b + k]!;
        s2 += v * l[d + k]!;
        s3 += v * l[e + k]!;
      }
      x[at + c]! -= s0;
      x[at + c + 1]! -= s1;
      x[at + c + 2]! -= s2;
      x[at + c + 3]! -= s3;
    }
  }
}

function tile({ params, f32 }: CpuRun<Params, 'factor'>, x: Float32Array): void {
  const { rows, first_row, column4 } = params;
  const width = 4 * params.width4;
  const column = 4 * column4;
  const l = f32('factor');
  const end = Math.min(column + TRIANGULAR_TILE, width);
  for (let r = first_row; r < first_row + rows; r++) {
    const at = r * width;
    for (let c = column; c < end; c++) {
      let v = x[at + c]!;
      for (let k = column; k < c; k++) v -= x[at + k]! * l[c * width + k]!;
      x[at + c] = v / l[c * width + c]!;
    }
  }
}

/**
 * A scaled matrix S with something added to its diagonal: `shift` to all of it, and 1 more where S has 0 (an input that is never
 * active) and `fill_dead` is set. `reversed`: rows and columns of S from the last to the first. See shaders/factor/add-damped.wgsl.
 */
export const addDamped = defineKernel({
  id: 'add-damped',
  wgsl: addDampedWgsl,
  params: { width: 'u32', reversed: 'u32', add: 'u32', fill_dead: 'u32', scale: 'f32', shift: 'f32' },
  buffers: { s: 'f32', y: 'rw f32' },
  work: ({ width }) => width ** 2,
  span: () => 1024,
  cpu({ params, f32 }) {
    const { width, reversed, add, fill_dead, scale, shift } = params;
    const s = f32('s');
    const y = f32('y');
    const n = width * width;
    for (let e = 0; e < n; e++) {
      const v = s[reversed === 1 ? n - 1 - e : e]!;
      let sum = v * scale;
      if (e % (width + 1) === 0) sum += shift + (fill_dead === 1 && v === 0 ? 1 : 0);
      y[e] = (add === 1 ? y[e]! : 0) + sum;
    }
  },
});
