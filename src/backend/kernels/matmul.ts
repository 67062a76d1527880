import matmulBlock from '../../../shaders/matmul-block.wgsl?raw';
import matmulLine from '../../../shaders/matmul-line.wgsl?raw';
import matmulTile from '../../../shaders/matmul-tile.wgsl?raw';
import matmulVector from '../../../shaders/matmul-vector.wgsl?raw';
import type { WeightDtype } from '../../formats/dtype';
import { f16ToF32 } from '../../formats/half';
import type { Backend } from '../backend';
import { type CpuRun, defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';
import { DTYPE_CODE, dtypeBytes } from './decode';

const LIBRARY = { F32: 'weightF32', F16: 'weightF16', BF16: 'weightBf16' } as const;

type Params =
  | 'rows'
  | 'outputs'
  | 'inputs4'
  | 'w_first'
  | 'x_stride4'
  | 'y_stride'
  | 'y_begin'
  | 'add'
  | 'biased'
  | 'scale';
type Buffers = 'weights' | 'x' | 'bias' | 'y';

const define = (form: string, wgsl: string, dtype: WeightDtype) =>
  defineKernel({
    id: `matmul-${form}-${dtype.toLowerCase()}`,
    wgsl: composeWgsl(wgsl, LIBRARY[dtype], 'matmul'),
    params: {
      rows: 'u32',
      outputs: 'u32',
      inputs4: 'u32',
      w_first: 'u32',
      x_stride4: 'u32',
      y_stride: 'u32',
      y_begin: 'u32',
      add: 'u32',
      biased: 'u32',
      scale: 'f32',
    },
    buffers: { weights: 'read', x: 'read', bias: 'read', y: 'read_write' },
    wasm(k, { params: p, at }) {
      const inputs = p.inputs4 * 4;
      const multiply = form === 'line' ? k.matmulLine : k.matmulBlock;
      multiply(
        at('weights') + p.w_first * inputs * dtypeBytes(DTYPE_CODE[dtype]),
        DTYPE_CODE[dtype],
        inputs,
        p.outputs,
        at('x'),
        p.x_stride4 * 16,
        p.rows,
        p.biased === 1 ? at('bias') : 0,
        at('y') + p.y_begin * 4,
        p.y_stride * 4,
        p.add,
        p.scale,
        SCRATCH,
      );
    },
    cpu: (run) => multiply(run, dtype),
  });

const forms = (form: string, wgsl: string) => ({
  F32: define(form, wgsl, 'F32'),
  F16: define(form, wgsl, 'F16'),
  BF16: define(form, wgsl, 'BF16'),
});

/** Every form of the linear layer by the dtype of its weight. See shaders/lib/matmul.wgsl and shaders/matmul-*.wgsl. */
export const matmul = {
  block: forms('block', matmulBlock),
  line: forms('line', matmulLine),
  tile: forms('tile', matmulTile),
  vector: forms('vector', matmulVector),
};

export type MatmulForm = keyof typeof matmul;

/** Rows up to which one row at a time is faster than blocks of eight, or tiles of 64, that are mostly empty. */
const FEW_ROWS = { software: 2, gpu: 4 };

/** The form for this engine and number of rows. Software adapters do without barriers: they cost more than they save. */
export function matmulForm(engine: Pick<Backend, 'software'>, rows: number): MatmulForm {
  if (engine.software) return rows <= FEW_ROWS.software ? 'line' : 'block';
  return rows <= FEW_ROWS.gpu ? 'vector' : 'tile';
}

/** Workgroups of a form, and the work items it stamps. */
export function matmulWork(
  form: MatmulForm,
  rows: number,
  outputs: number,
): { groups: number; elements: number } {
  const blocks = (height: number, width: number) => Math.ceil(rows / height) * Math.ceil(outputs / width);
  if (form === 'block') return { groups: Math.ceil(blocks(8, 8) / 64), elements: blocks(8, 8) };
  if (form === 'line') return { groups: Math.ceil(blocks(1, 8) / 64), elements: blocks(1, 8) };
  const tiles = form === 'tile' ? blocks(64, 64) : blocks(1, 4);
  return { groups: tiles, elements: tiles };
}

/** f16 bits → f32 value. */
let halves: Float32Array | undefined;
function halfValues(): Float32Array {
  if (!halves) {
    const bits = Uint32Array.from({ length: 65536 }, (_, h) => f16ToF32(h));
    halves = new Float32Array(bits.buffer);
  }
  return halves;
}

/** Elements [begin, begin + out.length) of a packed tile, as f32. */
function widen(words: Uint32Array, dtype: WeightDtype, begin: number, out: Float32Array): void {
  if (dtype === 'F32') {
    out.set(new Float32Array(words.buffer, words.byteOffset + begin * 4, out.length));
    return;
  }
  const packed = new Uint16Array(words.buffer, words.byteOffset + begin * 2, out.length);
  if (dtype === 'BF16') {
    const bits = new Uint32Array(out.buffer, out.byteOffset, out.length);
    for (let i = 0; i < bits.length; i++) bits[i] = packed[i]! << 16;
  } else {
    const values = halfValues();
    for (let i = 0; i < out.length; i++) out[i] = values[packed[i]!]!;
  }
}

/** The twin where there is no WebAssembly (src/backend/cpu/forward-kernels.ts): sums in f64, 4 × 4 at a time; four weight rows are widened once and stay near while all rows of x pass. */
function multiply({ params, f32, u32 }: CpuRun<Params, Buffers>, dtype: WeightDtype): void {
  const { rows, outputs } = params;
  const inputs = params.inputs4 * 4;
  const stride = params.x_stride4 * 4;
  const x = f32('x');
  const sums = new Float64Array(16);
  const panel = new Float32Array(4 * inputs);
  const words = u32('weights');
  const store = storing(params, f32('bias'), f32('y'));
  for (let o = 0; o < outputs; o += 4) {
    const width = Math.min(4, outputs - o);
    widen(words, dtype, (params.w_first + o) * inputs, panel.subarray(0, width * inputs));
    for (let r = 0; r < rows; r += 4) {
      const height = Math.min(4, rows - r);
      if (height === 4) quad(x, r * stride, stride, panel, inputs, sums);
      else for (let i = 0; i < height; i++) line(x, (r + i) * stride, panel, inputs, sums, 4 * i);
      for (let i = 0; i < height; i++) {
        for (let j = 0; j < width; j++) store(r + i, o + j, sums[4 * i + j]!);
      }
    }
  }
}

function storing(params: Readonly<Record<Params, number>>, bias: Float32Array, y: Float32Array) {
  const { y_stride, y_begin, add, biased, scale } = params;
  return (row: number, out: number, sum: number) => {
    const at = row * y_stride + y_begin + out;
    y[at] = (add === 1 ? y[at]! : 0) + (biased === 1 ? bias[out]! : 0) + scale * sum;
  };
}

/** sums[4i + j] = x row i · panel row j, for four rows from `a` on. */
function quad(
  x: Float32Array,
  a: number,
  stride: number,
  panel: Float32Array,
  inputs: number,
  sums: Float64Array,
): void {
  const b = a + stride;
  const c = b + stride;
  const d = c + stride;
  let [a0, a1, a2, a3, b0, b1, b2, b3] = [0, 0, 0, 0, 0, 0, 0, 0];
  let [c0, c1, c2, c3, d0, d1, d2, d3] = [0, 0, 0, 0, 0, 0, 0, 0];
  for (let k = 0; k < inputs; k++) {
    const w0 = panel[k]!;
    const w1 = panel[inputs + k]!;
    const w2 = panel[2 * inputs + k]!;
    const w3 = panel[3 * inputs + k]!;
    let v = x[a + k]!;
    a0 += v * w0;
    a1 += v * w1;
    a2 += v * w2;
    a3 += v * w3;
    v = x[b + k]!;
    b0 += v * w0;
    b1 += v * w1;
    b2 += v * w2;
    b3 += v * w3;
    v = x[c + k]!;
    c0 += v * w0;
    c1 += v * w1;
    c2 += v * w2;
    c3 += v * w3;
    v = x[d + k]!;
    d0 += v * w0;
    d1 += v * w1;
    d2 += v * w2;
    d3 += v * w3;
  }
  sums.set([a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3]);
}

/** sums[at + j] = x row · panel row j. */
function line(
  x: Float32Array,
  a: number,
  panel: Float32Array,
  inputs: number,
  sums: Float64Array,
  at: number,
): void {
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  for (let k = 0; k < inputs; k++) {
    const v = x[a + k]!;
    s0 += v * panel[k]!;
    s1 += v * panel[inputs + k]!;
    s2 += v * panel[2 * inputs + k]!;
    s3 += v * panel[3 * inputs + k]!;
  }
  sums[at] = s0;
  sums[at + 1] = s1;
  sums[at + 2] = s2;
  sums[at + 3] = s3;
}
