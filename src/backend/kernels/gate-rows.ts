import gateRowsWgsl from '../../../shaders/gate-rows.wgsl?raw';
import { defineKernel } from '../kernel';
import { sigmoid } from '../special';

const geluTanh = (x: number) => 0.5 * x * (1 + Math.tanh(0.79788456 * (x + 0.044715 * x * x * x)));
/** In the order of the codes of shaders/gate-rows.wgsl. */
const FUNCTIONS = [sigmoid, (x: number) => x * sigmoid(x), (x: number) => x, geluTanh] as const;

/** Codes of shaders/gate-rows.wgsl. */
export const GATE_CODE = { sigmoid: 0, silu: 1, product: 2, gelu_tanh: 3 } as const;

/** Rows multiplied by a function of others, in place. See shaders/gate-rows.wgsl. */
export const gateRows = defineKernel({
  id: 'gate-rows',
  wgsl: gateRowsWgsl,
  libraries: ['special'],
  params: {
    rows: 'u32',
    width: 'u32',
    kind: 'u32',
    x_begin: 'u32',
    x_stride: 'u32',
    group: 'u32',
    group_stride: 'u32',
    unit: 'u32',
    y_stride: 'u32',
  },
  buffers: { x: 'read', y: 'read_write' },
  cpu({ params, f32 }) {
    const { rows, width, group, group_stride, unit } = params;
    const f = FUNCTIONS[params.kind]!;
    const x = f32('x');
    const y = f32('y');
    for (let r = 0; r < rows; r++) {
      const from = params.x_begin + r * params.x_stride;
      for (let i = 0; i < width; i++) {
        y[r * params.y_stride + i]! *= f(
          x[from + Math.floor(i / group) * group_stride + (i % group) * unit]!,
        );
      }
    }
  },
});
