import activateWgsl from '../../../shaders/activate.wgsl?raw';
import { defineKernel } from '../kernel';
import { erf } from '../special';
import { composeWgsl } from '../wgsl';

const geluTanh = (x: number) => 0.5 * x * (1 + Math.tanh(0.79788456 * (x + 0.044715 * x * x * x)));

/** In the order of the codes of shaders/activate.wgsl. */
const FUNCTIONS = [
  (x: number) => x / (1 + Math.exp(-x)),
  (x: number) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  geluTanh,
  (x: number) => Math.max(0, x),
] as const;

/** Codes of shaders/activate.wgsl; in f32 BLOOM's GELU is the tanh GELU. */
export const ACTIVATION_CODE = { silu: 0, gelu_erf: 1, gelu_tanh: 2, gelu_bloom: 2, relu: 3 } as const;

/** Activation and gating of an MLP's hidden rows. See shaders/activate.wgsl. */
export const activate = defineKernel({
  id: 'activate',
  wgsl: composeWgsl(activateWgsl, 'special'),
  params: { rows: 'u32', inner: 'u32', x_stride: 'u32', y_stride: 'u32', gated: 'u32', kind: 'u32' },
  buffers: { x: 'read', y: 'read_write' },
  wasm(k, { params, at }) {
    const { rows, inner, x_stride, y_stride, gated, kind } = params;
    for (let r = 0; r < rows; r++) {
      k.activateRow(at('x') + r * x_stride * 4, at('y') + r * y_stride * 4, inner, gated, kind);
    }
  },
  cpu({ params, f32 }) {
    const { rows, inner, x_stride, y_stride, gated, kind } = params;
    const f = FUNCTIONS[kind]!;
    const x = f32('x');
    const y = f32('y');
    for (let r = 0; r < rows; r++) {
      const from = r * x_stride;
      const to = r * y_stride;
      for (let i = 0; i < inner; i++) {
        y[to + i] = f(x[from + i]!) * (gated === 1 ? x[from + inner + i]! : 1);
      }
    }
  },
});
