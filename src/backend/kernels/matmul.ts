import encodeWeightsWgsl from '../../../shaders/matmul/encode-weights.wgsl?raw';
import matmulBlock from '../../../shaders/matmul/matmul-block.wgsl?raw';
import matmulLine from '../../../shaders/matmul/matmul-line.wgsl?raw';
import matmulTile from '../../../shaders/matmul/matmul-tile.wgsl?raw';
import matmulVector from '../../../shaders/matmul/matmul-vector.wgsl?raw';
import type { WeightDtype } from '../../formats/dtype';
import type { Backend } from '../backend';
import { defineKernel, type Kernel, SCRATCH } from '../kernel';
import { DTYPE_CODE, dtypeBytes } from './encoding';

const LIBRARY = { F32: 'weightF32', F16: 'weightF16', BF16: 'weightBf16' } as const;

/** Inputs of a block of weights of eight bits, and bytes of one with its scale: on the processor, and on graphics devices. */
export const ENCODED_BLOCK = { inputs: 32, bytes: 34, deviceBytes: 36 };

/** Code of weights of eight bits in panels, beside those of stored dtypes. */
export const ENCODED_CODE = 8;

/** Rows and outputs of one block, and the blocks of one workgroup, by form. */
const BLOCKS = {
  block: [8, 8, 64],
  tile: [64, 64, 1],
  packed: [1, 32, 64],
} as const;

export type MatmulForm = keyof typeof matmul;

/** What both kinds of forms are told: rows and outputs, places of weights, inputs and results, and what is added. */
const LINEAR = {
  rows: 'u32',
  outputs: 'u32',
  inputs4: 'u32',
  w_first: 'u32',
  x_stride4: 'u32',
  y_stride: 'u32',
  y_begin: 'u32',
  add: 'u32',
  biased: 'u32',
} as const;

const define = (form: keyof typeof BLOCKS, wgsl: string, dtype: WeightDtype) =>
  defineKernel({
    id: `matmul-${form}-${dtype.toLowerCase()}`,
    wgsl,
    libraries: [LIBRARY[dtype], 'matmul'],
    params: { ...LINEAR, scale: 'f32' },
    buffers: { weights: dtype === 'F32' ? 'vec4f' : 'vec2u', x: 'vec4f', bias: 'f32', y: 'rw f32' },
    work: ({ rows, outputs }) => Math.ceil(rows / BLOCKS[form][0]) * Math.ceil(outputs / BLOCKS[form][1]),
    span: () => BLOCKS[form][2],
    ...(form === 'packed' && { panels: DTYPE_CODE[dtype] }),
    wasm(k, { params: p, at }) {
      const inputs = p.inputs4 * 4;
      const multiply = form === 'packed' ? k.matmulPacked : k.matmulBlock;
      multiply(
        at('weights') + p.w_first * inputs * dtypeBytes(DTYPE_CODE[dtype]),
        DTYPE_CODE[dtype],
        inputs,
        p.outputs,
        at('x'),
        p.x_stride4 * 16,
        p.rows,
        p.biased === 1 ? at('bias') + p.w_first * 4 : 0,
        at('y') + p.y_begin * 4,
        p.y_stride * 4,
        p.add,
        p.scale,
        SCRATCH,
      );
    },
  });

const forms = (form: keyof typeof BLOCKS, wgsl: string) => ({
  F32: define(form, wgsl, 'F32'),
  F16: define(form, wgsl, 'F16'),
  BF16: define(form, wgsl, 'BF16'),
  Q8: atEightBits(define(form, wgsl, 'F32')),
});

/** The same by weights of eight bits: in rows on graphics devices, in panels by those that threads share, inputs cut to 16 bits. */
function atEightBits<P extends string, B extends string>({ wasm: _, ...kernel }: Kernel<P, B | 'weights'>) {
  return {
    ...kernel,
    id: kernel.id.replace(/f32$/, 'q8'),
    libraries: ['weightQ8' as const, ...kernel.libraries.slice(1)],
    buffers: { ...kernel.buffers, weights: 'u32' as const },
    ...(kernel.panels !== undefined && { panels: ENCODED_CODE }),
  };
}

/** The forms of the linear layer for many rows by the dtype of its weight. See shaders/lib/matmul.wgsl and shaders/matmul. */
export const matmul = {
  block: forms('block', matmulBlock),
  tile: forms('tile', matmulTile),
};

/** Of the processor's scratch, behind the matmul's own: outputs of one stretch twice, and a row. */
const STRETCH = 1024;
const OUTPUTS_AT = SCRATCH + 8192;
const ROW_AT = OUTPUTS_AT + 8 * STRETCH;

/** Sums of a block for few rows, and the blocks of one workgroup, by form. */
const SUMS = { line: [8, 64], vector: [4, 1] } as const;

const defineFew = (form: keyof typeof SUMS, wgsl: string, dtype: WeightDtype) =>
  defineKernel({
    id: `matmul-${form}-${dtype.toLowerCase()}`,
    wgsl,
    libraries: [
      LIBRARY[dtype],
      'special',
      'activation',
      'fewRows',
      ...(form === 'vector' ? ['vectorSums' as const] : []),
    ],
    params: {
      ...LINEAR,
      norm_kind: 'u32',
      gate: 'u32',
      layers: 'u32',
      second: 'u32',
      third: 'u32',
      rank4: 'u32',
      summands: 'u32',
      w_step: 'u32',
      scale: 'f32',
      epsilon: 'f32',
      update_scale: 'f32',
    },
    buffers: {
      weights: dtype === 'F32' ? 'vec4f' : 'vec2u',
      x: 'vec4f',
      bias: 'f32',
      norm: 'vec4f',
      narrow: 'vec4f',
      out_of: 'vec4f',
      y: 'rw f32',
    },
    work: ({ rows, outputs, gate }) =>
      rows * Math.ceil(outputs / (form === 'line' && gate > 0 ? 4 : SUMS[form][0])),
    span: () => SUMS[form][1],
    wasm(k, { params: p, at, floats }) {
      const inputs = p.inputs4 * 4;
      const rank = p.rank4 * 4;
      const F32 = DTYPE_CODE.F32;
      for (let r = 0; r < p.rows; r++) {
        /** Adds further summands of an output. */
        const addSummands = (row: number, output: number, to: number) => {
          for (let s = 1; s < p.summands; s++) {
            const w = p.w_first + output + s * p.w_step;
            const weights = at('weights') + w * inputs * dtypeBytes(DTYPE_CODE[dtype]);
            const factor = p.scale * floats[at('bias') / 4 + w]!;
            k.matmulBlock(weights, DTYPE_CODE[dtype], inputs, 1, row, 0, 1, 0, to, 0, 1, factor, SCRATCH);
          }
        };
        /** Outputs [first, first + count) of the row, from `to` on. */
        const multiply = (row: number, first: number, count: number, to: number, add: number) => {
          const w = p.w_first + first;
          const weights = at('weights') + w * inputs * dtypeBytes(DTYPE_CODE[dtype]);
          const bias = p.biased === 1 ? at('bias') + w * 4 : 0;
          const code = DTYPE_CODE[dtype];
          k.matmulBlock(weights, code, inputs, count, row, 0, 1, bias, to, 0, add, p.scale, SCRATCH);
          for (let o = 0; p.summands > 1 && o < count; o++) addSummands(row, first + o, to + 4 * o);
          const begins = [0, p.second, p.third].slice(0, rank > 0 ? p.layers : 0);
          for (const [layer, begin] of begins.entries()) {
            const own = Math.max(first, begin);
            const n = Math.min(first + count, begins[layer + 1] ?? first + count) - own;
            const narrow = at('narrow') + (r * p.layers + layer) * rank * 4;
            const out = at('out_of') + (p.w_first + own) * rank * 4;
            const y = to + (own - first) * 4;
            if (n > 0) k.matmulBlock(out, F32, rank, n, narrow, 0, 1, 0, y, 0, 1, p.update_scale, SCRATCH);
          }
        };
        let x = at('x') + r * p.x_stride4 * 16;
        const y = at('y') + (r * p.y_stride + p.y_begin) * 4;
        if (p.norm_kind > 0) {
          k.normRow(x, at('norm'), 0, ROW_AT, inputs, 0, p.norm_kind - 1, p.epsilon);
          x = ROW_AT;
        }
        if (p.gate === 0) multiply(x, 0, p.outputs, y, p.add);
        for (let o = 0; p.gate > 0 && o < p.outputs; o += STRETCH) {
          const count = Math.min(STRETCH, p.outputs - o);
          multiply(x, o, count, OUTPUTS_AT, 0);
          multiply(x, p.outputs + o, count, OUTPUTS_AT + 4 * count, 0);
          k.activateRow(OUTPUTS_AT, y + 4 * o, count, 1, p.gate - 1);
        }
      }
    },
  });

const formsForFew = (form: keyof typeof SUMS, wgsl: string) => ({
  F32: defineFew(form, wgsl, 'F32'),
  F16: defineFew(form, wgsl, 'F16'),
  BF16: defineFew(form, wgsl, 'BF16'),
  Q8: atEightBits(defineFew(form, wgsl, 'F32')),
});

/**
 * The forms for few rows, which take the norm ahead of the layer and the activation behind it along. See
 * shaders/lib/few-rows.wgsl.
 */
export const matmulFew = {
  line: formsForFew('line', matmulLine),
  vector: formsForFew('vector', matmulVector),
};

/** The linear layer by weights that {@link packPanels} laid out, any number of rows; on the processor alone. */
export const matmulPacked = forms('packed', '');

/** Outputs of a panel. */
export const PANEL = 32;

/**
 * Lays weights out in place for `matmul.packed`, 32 outputs [input][32] at a time; the buffer is long enough for whole panels.
 * `room`: 32 rows. On the processor alone.
 */
export const packPanels = defineKernel({
  id: 'pack-panels',
  wgsl: '',
  params: { dtype: 'u32', inputs: 'u32', outputs: 'u32' },
  buffers: { weights: 'rw u32', room: 'rw u32' },
  work: ({ outputs }) => outputs,
  span: () => PANEL,
  wasm: (k, { params: { dtype, inputs, outputs }, at }) =>
    k.packPanels(at('weights'), dtype, inputs, outputs, at('room')),
});

/** Rows up to which one row at a time is faster than blocks of eight, or tiles of 64, that are mostly empty. */
const FEW_ROWS = { software: 2, gpu: 4 };

/** The form for this engine. Software adapters do without barriers: they cost more than they save. */
export function matmulForm({ software }: Pick<Backend, 'software'>): MatmulForm {
  return software ? 'block' : 'tile';
}

/** The form for so few rows on this engine; undefined where there are more, and on the processor. */
export function fewRowsForm(
  { kind, software }: Pick<Backend, 'kind' | 'software'>,
  rows: number,
): keyof typeof matmulFew | undefined {
  if (kind === 'cpu' || rows > FEW_ROWS[software ? 'software' : 'gpu']) return undefined;
  return software ? 'line' : 'vector';
}

/** Bytes of a weight row in panels. */
export function panelRowBytes(code: number, inputs: number): number {
  if (code !== ENCODED_CODE) return inputs * dtypeBytes(code);
  return (inputs / ENCODED_BLOCK.inputs) * ENCODED_BLOCK.bytes;
}

/**
 * Encodes stored rows as weights of eight bits, as Q8_0 has them, from output `first` on; `inputs` is a multiple of 32. On the
 * processor into panels that threads share alone, `first` being a multiple of a panel's outputs; else in blocks, row after row.
 */
export const encodeWeights = defineKernel({
  id: 'encode-weights',
  wgsl: encodeWeightsWgsl,
  libraries: ['half', 'stored', 'exact4'],
  params: { dtype: 'u32', inputs: 'u32', outputs: 'u32', first: 'u32' },
  buffers: { raw: 'u32', weights: 'rw u32' },
  work: ({ inputs, outputs }) => (outputs * inputs) / ENCODED_BLOCK.inputs,
  span: () => 64,
});
