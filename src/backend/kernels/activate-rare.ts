import activateRareWgsl from '../../../shaders/activate-rare.wgsl?raw';
import { defineKernel } from '../kernel';

/** Codes of shaders/activate-rare.wgsl. */
export const RARE_CODE = { relu2: 0, xielu: 1, swiglu_clamped: 2 } as const;

/** GPT-OSS (transformers modeling_gpt_oss.py): clamp and slope of its SwiGLU. */
const LIMIT = 7;
const SLOPE = 1.702;

/** Activations of single families. See shaders/activate-rare.wgsl. */
export const activateRare = defineKernel({
  id: 'activate-rare',
  wgsl: activateRareWgsl,
  libraries: ['special'],
  params: {
    rows: 'u32',
    inner: 'u32',
    x_stride: 'u32',
    y_stride: 'u32',
    gated: 'u32',
    kind: 'u32',
    xp: 'f32',
    xn: 'f32',
    beta: 'f32',
    floor: 'f32',
  },
  buffers: { x: 'read', y: 'read_write' },
  cpu({ params, f32 }) {
    const { rows, inner, x_stride, y_stride, gated, kind, xp, xn, beta, floor } = params;
    const x = f32('x');
    const y = f32('y');
    const activation = (v: number) => {
      if (kind === RARE_CODE.relu2) return Math.max(0, v) ** 2;
      return v > 0 ? xp * v * v + beta * v : (Math.expm1(Math.min(v, floor)) - v) * xn + beta * v;
    };
    const swiglu = (at: number) => {
      const gate = Math.min(x[at]!, LIMIT);
      const up = Math.min(Math.max(x[at + 1]!, -LIMIT), LIMIT);
      return (up + 1) * (gate / (1 + Math.exp(-SLOPE * gate)));
    };
    for (let r = 0; r < rows; r++) {
      const begin = r * x_stride;
      for (let i = 0; i < inner; i++) {
        const at = begin + i;
        y[r * y_stride + i] =
          kind === RARE_CODE.swiglu_clamped
            ? swiglu(begin + 2 * i)
            : activation(x[at]!) * (gated === 1 ? x[at + inner]! : 1);
      }
    }
  },
});
