import matmulBlock from '../../../shaders/matmul/matmul-block.wgsl?raw';
import matmulLine from '../../../shaders/matmul/matmul-line.wgsl?raw';
import matmulTile from '../../../shaders/matmul/matmul-tile.wgsl?raw';
import matmulVector from '../../../shaders/matmul/matmul-vector.wgsl?raw';
import type { WeightDtype } from '../../formats/dtype';
import type { Backend } from '../backend';
import { defineKernel, SCRATCH } from '../kernel';
import { DTYPE_CODE, dtypeBytes } from './encoding';

const LIBRARY = { F32: 'weightF32', F16: 'weightF16', BF16: 'weightBf16' } as const;

/** Rows and outputs of one block, and the blocks of one workgroup, by form. */
const BLOCKS = {
  block: [8, 8, 64],
  line: [1, 8, 64],
  tile: [64, 64, 1],
  vector: [1, 4, 1],
  packed: [1, 32, 64],
} as const;

export type MatmulForm = keyof typeof matmul;

const define = (form: keyof typeof BLOCKS, wgsl: string, dtype: WeightDtype) =>
  defineKernel({
    id: `matmul-${form}-${dtype.toLowerCase()}`,
    wgsl,
    libraries: [LIBRARY[dtype], 'matmul'],
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
        p.biased === 1 ? at('bias') : 0,
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
});

/** Every form of the linear layer by the dtype of its weight. See shaders/lib/matmul.wgsl and shaders/matmul-*.wgsl. */
export const matmul = {
  block: forms('block', matmulBlock),
  line: forms('line', matmulLine),
  tile: forms('tile', matmulTile),
  vector: forms('vector', matmulVector),
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

/** The form for this engine and number of rows. Software adapters do without barriers: they cost more than they save. */
export function matmulForm(engine: Pick<Backend, 'software'>, rows: number): MatmulForm {
  if (engine.software) return rows <= FEW_ROWS.software ? 'line' : 'block';
  return rows <= FEW_ROWS.gpu ? 'vector' : 'tile';
}

/** Inputs of a block of weights of eight bits, and bytes of one with its scale. */
export const ENCODED_BLOCK = { inputs: 32, bytes: 34 };

/** Code of weights of eight bits in panels, beside those of stored dtypes. */
export const ENCODED_CODE = 8;

/** Bytes of a weight row in panels. */
export function panelRowBytes(code: number, inputs: number): number {
  if (code !== ENCODED_CODE) return inputs * dtypeBytes(code);
  return (inputs / ENCODED_BLOCK.inputs) * ENCODED_BLOCK.bytes;
}

/**
 * Encodes stored rows as weights of eight bits, as Q8_0 has them, into panels from output `first` on; `inputs` is a multiple of
 * 32, `first` of a panel's outputs. Into weights that threads share alone.
 */
export const encodePanels = defineKernel({
  id: 'encode-panels',
  wgsl: '',
  params: { dtype: 'u32', inputs: 'u32', outputs: 'u32', first: 'u32' },
  buffers: { rows: 'u32', weights: 'rw u32' },
  work: ({ outputs }) => outputs,
  span: () => PANEL,
});

/** The linear layer by weights of eight bits; the inputs are cut to 16 bits. By weights that threads share alone. */
const { wasm: _, ...product } = matmulPacked.F32;
export const matmulEncoded = { ...product, id: 'matmul-encoded', panels: ENCODED_CODE };
