import inputGramBlock from '../../../shaders/input-gram-block.wgsl?raw';
import inputGramTile from '../../../shaders/input-gram-tile.wgsl?raw';
import type { Backend } from '../backend';
import { type CpuRun, defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Most rows that a dispatch sums before it folds them into S. */
export const GRAM_ROWS = 2048;
/** The same where the processor does it: so many rows of two tiles stay in its first cache. */
const SOFTWARE_ROWS = 512;

type Params = 'rows' | 'first' | 'stride4' | 'begin4' | 'width4' | 'first_tile';

const define = (form: string, wgsl: string, side: number) =>
  defineKernel({
    id: `input-gram-${form}`,
    wgsl: composeWgsl(wgsl, 'inputGram'),
    params: { rows: 'u32', first: 'u32', stride4: 'u32', begin4: 'u32', width4: 'u32', first_tile: 'u32' },
    buffers: { x: 'read', s: 'read_write' },
    wasm(k, { params, at, n }) {
      const { rows, first, stride4, begin4, width4, first_tile } = params;
      const x = at('x') + (first * stride4 + begin4) * 16;
      k.inputGram(x, stride4 * 16, rows, width4 * 4, at('s'), first_tile, first_tile + n, SCRATCH);
    },
    cpu: (run) => accumulate(run, side),
  });

/** S += x xᵀ in both forms. See shaders/lib/input-gram.wgsl. */
export const inputGram = {
  block: define('block', inputGramBlock, 2),
  tile: define('tile', inputGramTile, 16),
};

export type InputGramForm = keyof typeof inputGram;

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

/**
 * Sums in f64, 4 × 4 at a time over columns that lie together: x is turned around first. The tiles of the dispatch are
 * rows of tiles of the lower triangle from `first_tile` on, as the workgroups count them.
 */
function accumulate({ params, groups, f32 }: CpuRun<Params, 'x' | 's'>, side4: number): void {
  const { rows, first, stride4, begin4, width4, first_tile } = params;
  const width = 4 * width4;
  const side = Math.ceil(width4 / side4);
  const perGroup = side4 === 2 ? 64 : 1;
  const end = Math.min(first_tile + groups * perGroup, (side * (side + 1)) / 2);
  const turned = turn(f32('x'), rows, 4 * stride4, first * 4 * stride4 + 4 * begin4, width);
  const s = f32('s');
  let i = Math.floor((Math.sqrt(8 * first_tile + 1) - 1) / 2);
  let j = first_tile - (i * (i + 1)) / 2;
  for (let tile = first_tile; tile < end; tile++) {
    for (let p = i * side4; p < Math.min((i + 1) * side4, width4); p++) {
      for (let q = j * side4; q < Math.min((j + 1) * side4, p + 1); q++)
        quad(turned, rows, s, width, 4 * p, 4 * q);
    }
    if (++j > i) {
      i++;
      j = 0;
    }
  }
}

/** Columns begin … begin + width of the rows, as [width, rows]. */
function turn(x: Float32Array, rows: number, stride: number, begin: number, width: number): Float32Array {
  const out = new Float32Array(width * rows);
  for (let r = 0; r < rows; r++) {
    const at = begin + r * stride;
    for (let c = 0; c < width; c++) out[c * rows + r] = x[at + c]!;
  }
  return out;
}

const sums = new Float64Array(16);

/** The products of columns p … p + 3 and q … q + 3, folded into both sides of S. */
function quad(x: Float32Array, rows: number, s: Float32Array, width: number, p: number, q: number): void {
  const [a, b, c, d] = [p * rows, (p + 1) * rows, (p + 2) * rows, (p + 3) * rows];
  const [e, f, g, h] = [q * rows, (q + 1) * rows, (q + 2) * rows, (q + 3) * rows];
  let [a0, a1, a2, a3, b0, b1, b2, b3] = [0, 0, 0, 0, 0, 0, 0, 0];
  let [c0, c1, c2, c3, d0, d1, d2, d3] = [0, 0, 0, 0, 0, 0, 0, 0];
  for (let r = 0; r < rows; r++) {
    const w0 = x[e + r]!;
    const w1 = x[f + r]!;
    const w2 = x[g + r]!;
    const w3 = x[h + r]!;
    let v = x[a + r]!;
    a0 += v * w0;
    a1 += v * w1;
    a2 += v * w2;
    a3 += v * w3;
    v = x[b + r]!;
    b0 += v * w0;
    b1 += v * w1;
    b2 += v * w2;
    b3 += v * w3;
    v = x[c + r]!;
    c0 += v * w0;
    c1 += v * w1;
    c2 += v * w2;
    c3 += v * w3;
    v = x[d + r]!;
    d0 += v * w0;
    d1 += v * w1;
    d2 += v * w2;
    d3 += v * w3;
  }
  sums.set([a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3]);
  for (let i = 0; i < 4; i++) {
    for (let j = 0; j < (p === q ? i + 1 : 4); j++) {
      const at = (p + i) * width + q + j;
      s[at] = s[at]! + sums[4 * i + j]!;
      s[(q + j) * width + p + i] = s[at]!;
    }
  }
}
