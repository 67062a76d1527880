import activateWgsl from '../../../shaders/activation/activate.wgsl?raw';
import activateRareWgsl from '../../../shaders/activation/activate-rare.wgsl?raw';
import capLogitsWgsl from '../../../shaders/activation/cap-logits.wgsl?raw';
import drawTokenWgsl from '../../../shaders/activation/draw-token.wgsl?raw';
import gateRowsWgsl from '../../../shaders/activation/gate-rows.wgsl?raw';
import logSumWgsl from '../../../shaders/activation/log-sum.wgsl?raw';
import normWgsl from '../../../shaders/activation/norm.wgsl?raw';
import normLineWgsl from '../../../shaders/activation/norm-line.wgsl?raw';
import { defineKernel } from '../kernel';
import { probabilityOf, sample } from '../sampler';
import { sigmoid } from '../special';

/** Codes of shaders/lib/norm.wgsl. */
export const NORM_CODE = { rms: 0, rms_plus_one: 1, layer: 2, layer_plus_one: 3 } as const;

const define = (id: string, wgsl: string, rows: number) =>
  defineKernel({
    id,
    wgsl,
    libraries: rows === 1 ? ['norm', 'rowGroup'] : ['norm'],
    params: {
      rows: 'u32',
      groups: 'u32',
      group_stride4: 'u32',
      width4: 'u32',
      x_begin4: 'u32',
      x_stride4: 'u32',
      y_stride4: 'u32',
      kind: 'u32',
      biased: 'u32',
      epsilon: 'f32',
    },
    buffers: { x: 'vec4f', weight: 'vec4f', bias: 'vec4f', y: 'rw vec4f' },
    work: (p) => p.rows * p.groups,
    span: () => rows,
    wasm(k, { params: p, at }) {
      const bias = p.biased === 1 ? at('bias') : 0;
      const width = p.width4 * 4;
      const centred = p.kind >= NORM_CODE.layer ? 1 : 0;
      const shift = p.kind % 2;
      for (let row = 0; row < p.rows; row++) {
        for (let part = 0; part < p.groups; part++) {
          const from = at('x') + (p.x_begin4 + row * p.x_stride4 + part * p.group_stride4) * 16;
          const to = at('y') + row * p.y_stride4 * 16 + part * width * 4;
          k.normRow(from, at('weight'), bias, to, width, centred, shift, p.epsilon);
        }
      }
    },
  });

/** RMS norm, Gemma's with 1 + w, or LayerNorm of every group of every row: a workgroup each. See shaders/activation/norm.wgsl. */
export const norm = define('norm', normWgsl, 1);
/** The same, an invocation each. See shaders/activation/norm-line.wgsl. */
export const normLine = define('norm-line', normLineWgsl, 64);

/** Codes of shaders/lib/activation.wgsl; in f32 BLOOM's GELU is the tanh GELU. */
export const ACTIVATION_CODE = { silu: 0, gelu_erf: 1, gelu_tanh: 2, gelu_bloom: 2, relu: 3 } as const;

/** Activation and gating of an MLP's hidden rows. See shaders/activation/activate.wgsl. */
export const activate = defineKernel({
  id: 'activate',
  wgsl: activateWgsl,
  libraries: ['special', 'activation'],
  params: { rows: 'u32', inner: 'u32', x_stride: 'u32', y_stride: 'u32', gated: 'u32', kind: 'u32' },
  buffers: { x: 'f32', y: 'rw f32' },
  work: ({ rows, inner }) => rows * inner,
  span: () => 256,
  wasm(k, { params, at }) {
    const { rows, inner, x_stride, y_stride, gated, kind } = params;
    for (let r = 0; r < rows; r++) {
      k.activateRow(at('x') + r * x_stride * 4, at('y') + r * y_stride * 4, inner, gated, kind);
    }
  },
});

/** Codes of shaders/activation/activate-rare.wgsl. */
export const RARE_CODE = { relu2: 0, xielu: 1, swiglu_clamped: 2 } as const;

/** GPT-OSS (transformers modeling_gpt_oss.py): clamp and slope of its SwiGLU. */
const LIMIT = 7;
const SLOPE = 1.702;

/** Activations of single families. See shaders/activation/activate-rare.wgsl. */
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
  buffers: { x: 'f32', y: 'rw f32' },
  work: ({ rows, inner }) => rows * inner,
  span: () => 256,
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

const geluTanh = (x: number) => 0.5 * x * (1 + Math.tanh(0.79788456 * (x + 0.044715 * x * x * x)));
/** In the order of the codes of shaders/activation/gate-rows.wgsl. */
const FUNCTIONS = [sigmoid, (x: number) => x * sigmoid(x), (x: number) => x, geluTanh] as const;

/** Codes of shaders/activation/gate-rows.wgsl. */
export const GATE_CODE = { sigmoid: 0, silu: 1, product: 2, gelu_tanh: 3 } as const;

/** Rows multiplied by a function of others, in place. See shaders/activation/gate-rows.wgsl. */
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
  buffers: { x: 'f32', y: 'rw f32' },
  work: ({ rows, width }) => rows * width,
  span: () => 256,
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

/** Scales and soft-caps in place. See shaders/activation/cap-logits.wgsl. */
export const capLogits = defineKernel({
  id: 'cap-logits',
  wgsl: capLogitsWgsl,
  libraries: ['special'],
  params: { elements: 'u32', factor: 'f32', cap: 'f32' },
  buffers: { x: 'rw f32' },
  span: () => 256,
  wasm(k, { params, at }) {
    k.capLogits(at('x'), params.elements, params.factor, params.cap);
  },
});

/** Columns of one partial sum. */
export const LOG_SUM_SEGMENT = 1024;

/** Partial log-sum-exps of logits and the targets' own logits. See shaders/activation/log-sum.wgsl. */
export const logSum = defineKernel({
  id: 'log-sum',
  wgsl: logSumWgsl,
  params: {
    rows: 'u32',
    columns: 'u32',
    stride: 'u32',
    first_column: 'u32',
    sums_begin: 'u32',
    factor: 'f32',
  },
  buffers: { logits: 'f32', targets: 'u32', sums: 'rw f32', picked: 'rw f32' },
  work: ({ rows, columns }) => rows * Math.ceil(columns / LOG_SUM_SEGMENT),
  span: () => 64,
  wasm(k, { params, at, words, floats }) {
    const { rows, columns, stride, first_column, sums_begin, factor } = params;
    const segments = Math.ceil(columns / LOG_SUM_SEGMENT);
    const [logits, sums] = [at('logits'), at('sums') + sums_begin * 4];
    const [targets, picked] = [at('targets') / 4, at('picked') / 4];
    for (let r = 0; r < rows; r++) {
      const row = logits + r * stride * 4;
      k.logSumRow(row, columns, sums + r * segments * 8);
      for (let s = 0; s < (factor === 1 ? 0 : segments); s++) {
        const at = sums / 4 + 2 * (r * segments + s);
        const begin = row / 4 + s * LOG_SUM_SEGMENT;
        let sum = 0;
        for (let c = begin; c < Math.min(begin + LOG_SUM_SEGMENT, row / 4 + columns); c++)
          sum += Math.exp((floats[c]! - floats[at]!) * factor);
        floats[at + 1] = sum;
      }
      const wanted = words[targets + r]! - first_column;
      if (wanted >= 0 && wanted < columns) floats[picked + r] = floats[row / 4 + wanted]!;
    }
  },
});

/** Word of {@link drawToken} in place of a token: the host has to look at the logits. */
export const NOTHING_DRAWN = 0xffffffff;

/** Form of the words of {@link drawToken}: −ln p up to 24 nats in the bits that the largest id leaves. */
export function drawnWords(vocab: number) {
  const idBits = 32 - Math.clz32(vocab - 1);
  const steps = 2 ** (32 - idBits) / 24;
  return {
    params: { id_bits: idBits, steps },
    token: (word: number) => ({
      id: word & (2 ** idBits - 1),
      probability: Math.exp(-(word >>> idBits) / steps),
    }),
  };
}

/** A token drawn from every row of logits. See shaders/activation/draw-token.wgsl. */
export const drawToken = defineKernel({
  id: 'draw-token',
  wgsl: drawTokenWgsl,
  libraries: ['drawLikely'],
  params: {
    rows: 'u32',
    vocab: 'u32',
    segments: 'u32',
    layers: 'u32',
    id_bits: 'u32',
    steps: 'f32',
    inverse: 'f32',
    top_p: 'f32',
  },
  buffers: {
    logits: 'f32',
    sums: 'f32',
    warm: 'f32',
    random: 'u32',
    counts: 'u32',
    drawn: 'rw u32',
  },
  work: ({ rows }) => rows,
  span: () => 1,
  cpu({ params, f32, u32 }) {
    const { rows, vocab, segments, layers, id_bits: idBits, steps, inverse, top_p: topP } = params;
    const temperature = inverse === 0 ? 0 : 1 / inverse;
    const [random, drawn] = [u32('random'), u32('drawn')];
    const begins = Array.from({ length: segments }, (_, s) => s * LOG_SUM_SEGMENT);
    const isSound = u32('counts')
      .subarray(0, layers)
      .every((n) => n === 0);
    for (let r = 0; r < rows; r++) {
      const values = f32('sums').subarray(2 * r * segments, 2 * (r + 1) * segments);
      const logits = f32('logits').subarray(r * vocab, (r + 1) * vocab);
      const scores = { logits, sums: { begins, values } };
      drawn[r] = NOTHING_DRAWN;
      if (!isSound || !values.every(Number.isFinite)) continue;
      const id = sample(scores, { temperature, topP }, [random[2 * r]!, random[2 * r + 1]!]);
      const step = Math.round(-Math.log(probabilityOf(scores, id)) * steps);
      if (step < NOTHING_DRAWN >>> idBits) drawn[r] = ((step << idBits) | id) >>> 0;
    }
  },
});
