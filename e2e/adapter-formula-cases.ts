/** Adapters by the formulas of PEFT 0.21's source, written in dense matrices: what each makes of its module. */
import { torchNormals } from '../src/linalg/torch-random';
import {
  type Case,
  draw,
  drawn,
  each,
  indices,
  type Matrix,
  matrixOf,
  type Parts,
  plus,
  times,
  turned,
  zeros,
} from './adapter-formulas';

/** PEFT tuners/road/layer.py: R of `_get_delta_weight`, times the weight and the bias. */
function rotation(variant: string, group: number, theta: number[], alpha: number[], outputs: number): Matrix {
  const half = group / 2;
  const R = zeros(outputs, outputs);
  for (let g = 0; g < outputs / group; g++) {
    for (let i = 0; i < half; i++) {
      const [top, bottom] = [g * group + i, g * group + half + i];
      for (const [row, sign] of [
        [top, -1],
        [bottom, 1],
      ] as const) {
        const at = { road_1: g * half + i, road_2: row, road_4: g * 2 * group + (row - g * group) }[variant]!;
        const next = variant === 'road_4' ? at + group : at;
        R[row]![row] = alpha[at]! * Math.cos(theta[at]!);
        R[row]![row === top ? bottom : top] = sign * alpha[next]! * Math.sin(theta[next]!);
      }
    }
  }
  return R;
}

export function road(variant: string, group: number | undefined, outputs: number): Case {
  const size = outputs * { road_1: 0.5, road_2: 1, road_4: 2 }[variant]!;
  const parts = { road_theta: drawn(size), road_alpha: drawn(size) };
  const R = rotation(variant, group ?? 64, parts.road_theta.values, parts.road_alpha.values, outputs);
  return {
    ...{ type: 'ROAD', outputs, inputs: 5, parts },
    config: { ...(variant === 'road_1' ? {} : { variant }), ...(group ? { group_size: group } : {}) },
    weight: (W) => times(R, W),
    bias: (b) => times(R, b),
  };
}

/** PEFT tuners/glora/layer.py: merge. */
export function glora(ab: string, c: string, de: string, biasless = false): Case {
  const [outputs, inputs, r] = [7, 5, 3];
  const support = (letter: string, kind: string, rows: number, columns: number): [Parts, () => Matrix] => {
    const name = `glora_${letter}`;
    if (kind === 'lora') {
      const [Xd, Xu] = [drawn(rows, r), drawn(r, columns)];
      return [{ [`${name}.Xd`]: Xd, [`${name}.Xu`]: Xu }, () => times(matrixOf(Xd), matrixOf(Xu))];
    }
    const full = (at: (i: number) => number) => () => each(zeros(rows, columns), (_, i) => at(i));
    if (kind === 'none')
      return [
        { [`${name}.zeros`]: { shape: [rows, columns], values: draw(rows * columns).map(() => 0) } },
        full(() => 0),
      ];
    const X = kind === 'constant' ? drawn(1) : columns === 1 && letter !== 'C' ? drawn(rows) : drawn(rows, 1);
    return [{ [`${name}.X`]: X }, full((i) => X.values[kind === 'constant' ? 0 : i]!)];
  };
  const [A, B] = [support('A', ab, outputs, inputs), support('B', ab, outputs, inputs)];
  const C = support('C', c, inputs, 1);
  const [D, E] = [support('D', de, outputs, 1), support('E', de, outputs, 1)];
  return {
    ...{ type: 'GLORA', outputs, inputs, biasless },
    config: { r, config_A_B: ab, config_C: c, config_D_E: de },
    parts: Object.assign({}, A[0], B[0], C[0], D[0], E[0]),
    weight: (W) =>
      plus(
        each(W, (w, i, j) => w * (1 + A[1]()[i]![j]!)),
        B[1](),
      ),
    ...(biasless
      ? {}
      : {
          bias: (b, W) =>
            plus(
              plus(
                each(b, (x, i) => x * (1 + D[1]()[i]![0]!)),
                E[1](),
              ),
              times(W, C[1]()),
            ),
        }),
  };
}

// numpy.linalg.qr of P, which calls LAPACK as torch does
export const TALL = {
  P: [
    [1, 2],
    [-3, 1],
    [2, 2],
    [1, -1],
    [0, 3],
    [2, 1],
  ],
  Q: [
    [-0.2294157338705618, -0.4088381597072997],
    [0.6882472016116854, -0.3727642044390084],
    [-0.4588314677411236, -0.3607395526829114],
    [-0.2294157338705618, 0.276566990390232],
    [0, -0.6854051500975317],
    [-0.4588314677411236, -0.13227116931706753],
  ],
};
export const SQUARE = {
  P: [
    [2, 1, 0.5],
    [-1, 2, 1],
    [0.5, 1, -2],
  ],
  Q: [
    [-0.8728715609439694, -0.33180602480250126, -0.3577708763999664],
    [0.4364357804719848, -0.8587920641947092, -0.2683281572999748],
    [-0.2182178902359924, -0.3903600291794133, 0.8944271909999159],
  ],
};

/** PEFT tuners/deft/layer.py: `(I − P_proj) W + Q_P R`. */
export function deft(
  config: Record<string, unknown>,
  { P, Q }: { P: Matrix; Q: Matrix },
  stored?: 'in_out',
): Case {
  const [outputs, rank, inputs] = [P.length, P[0]!.length, 5];
  const qr = config.decomposition_method === 'qr';
  const [left, right] = qr ? [Q, Q] : [P, each(P, (x) => Math.max(0, x))];
  const R = drawn(rank, inputs);
  const scale = typeof config.alpha === 'number' ? config.alpha / rank : 1;
  return {
    ...{ type: 'DEFT', outputs, inputs, config: { ...config, ...(stored ? { fan_in_fan_out: true } : {}) } },
    ...(stored ? { stored } : {}),
    parts: {
      deft_P: { shape: [outputs, rank], values: P.flat() },
      ...(config.para ? {} : { deft_R: R }),
    },
    weight(stands) {
      const W = stored ? turned(stands) : stands;
      const kept = plus(W, times(times(left, turned(right)), W), -1);
      const changed = config.para ? kept : plus(kept, times(left, matrixOf(R)), scale);
      return stored ? turned(changed) : changed;
    },
  };
}

export const ACTIVATIONS: Readonly<Record<string, (x: number) => number>> = {
  relu: (x) => Math.max(x, 0),
  relu2: (x) => (x > 0 ? x * x : 0),
  silu: (x) => x / (1 + Math.E ** -x),
  swish: (x) => x / (1 + Math.E ** -x),
  sigmoid: (x) => 1 / (1 + Math.E ** -x),
  tanh: (x) => 1 - 2 / (Math.E ** (2 * x) + 1),
  linear: (x) => x,
  leaky_relu: (x) => Math.max(x, 0) + 0.01 * Math.min(x, 0),
  quick_gelu: (x) => x * (1 / (1 + Math.E ** (-1.702 * x))),
  gelu_new: (x) => (x / 2) * (1 + Math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
  gelu_pytorch_tanh: (x) => (x / 2) * (1 + Math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
};

/** PEFT tuners/peanut/layer.py: `_compute_delta_weight`. */
export function peanut(act: string, depth: number, scaling: number): Case {
  const [outputs, inputs, r] = [7, 5, 3];
  const [A, B] = [drawn(r, outputs), drawn(outputs, r)];
  const layers = (name: string) =>
    Object.fromEntries(Array.from({ length: depth }, (_, i) => [`peanut_${name}.${i}.weight`, drawn(r, r)]));
  const parts: Parts = {
    ...{ 'peanut_A.weight': A, 'peanut_B.weight': B },
    ...layers('encoders'),
    ...layers('decoders'),
  };
  const f = ACTIVATIONS[act]!;
  return {
    ...{ type: 'PEANUT', outputs, inputs, parts },
    config: { r, depth, ...(act === 'relu' ? {} : { act_fn: act }), ...(scaling === 1 ? {} : { scaling }) },
    weight(W) {
      let x = each(times(turned(W), turned(matrixOf(A))), f);
      const before: Matrix[] = [];
      for (let i = 0; i < depth; i++) {
        before.push(x);
        x = each(times(x, turned(matrixOf(parts[`peanut_encoders.${i}.weight`]!))), f);
      }
      for (let i = 0; i < depth; i++) {
        x = plus(each(times(x, turned(matrixOf(parts[`peanut_decoders.${i}.weight`]!))), f), before.pop()!);
      }
      return plus(W, turned(times(x, turned(matrixOf(B)))), scaling);
    },
  };
}

/** PEFT tuners/supertuning/layer.py: `get_delta_weight`. */
export function supertuning(rank: number): Case {
  const [outputs, inputs, count] = [7, 5, 6];
  const places = [0, 4, 12, 17, 33, 34];
  const values = drawn(count);
  const [A, B] = [drawn(rank || 1, inputs), drawn(outputs, rank || 1)];
  return {
    ...{ type: 'SUPERTUNING', outputs, inputs },
    config: rank ? { r: rank, lora_alpha: 5 } : { r: null },
    parts: {
      supertuning_values: values,
      supertuning_indices: { dtype: 'I32', shape: [count], values: places },
      ...(rank ? { 'supertuning_lora_A.weight': A, 'supertuning_lora_B.weight': B } : {}),
    },
    weight: (W) => {
      const sparse = each(W, (w, i, j) => w + (values.values[places.indexOf(i * inputs + j)] ?? 0));
      return rank ? plus(sparse, times(matrixOf(B), matrixOf(A)), 5 / rank) : sparse;
    },
  };
}

/** PEFT tuners/unilora/layer.py: `_get_lora_matrices`. */
export function unilora(stored?: 'in_out'): Case {
  const [outputs, inputs, r, length] = [7, 5, 3, 11];
  const theta = drawn(length);
  const at = { A: indices('I64', [r, inputs], length), B: indices('I64', [outputs, r], length) };
  const scales = { A: drawn(r, inputs), B: drawn(outputs, r) };
  const factor = (name: 'A' | 'B') =>
    each(matrixOf(scales[name]), (s, i, j) => s * theta.values[matrixOf(at[name])[i]![j]!]!);
  return {
    ...{ type: 'UNILORA', outputs, inputs, ...(stored ? { stored } : {}) },
    config: { r, save_indices: true, theta_d_length: length, fan_in_fan_out: stored !== undefined },
    parts: {
      'base_model.unilora_theta_d': theta,
      ...{ unilora_indices_A: at.A, unilora_indices_B: at.B },
      ...{ unilora_scales_A: scales.A, unilora_scales_B: scales.B },
    },
    weight: (W) => {
      const change = times(factor('B'), factor('A'));
      return plus(W, stored ? turned(change) : change);
    },
  };
}

/**
 * PEFT tuners/tinylora/layer.py: `get_delta_weight`, of two modules of which this one came second in the Python model.
 * @param tying their share of one vector
 */
export function tinylora(tying: number, stored?: 'in_out'): Case {
  const [outputs, inputs, r, u] = [7, 5, 2, 6];
  const projections = (place: number) => ({
    shape: [u, r, r],
    values: [...torchNormals(9 + place, u * r * r)].map((x) => Math.fround(x / Math.SQRT2)),
  });
  const [A, B, P] = [drawn(r, inputs), drawn(outputs, r), projections(1)];
  const v = [drawn(u), drawn(u)];
  return {
    ...{ type: 'TINYLORA', outputs, inputs, ...(stored ? { stored } : {}) },
    config: { r, u, projection_seed: 9, weight_tying: tying, fan_in_fan_out: stored !== undefined },
    parts: {
      'base_model.tinylora_v.0': v[0]!,
      ...(tying === 1 ? {} : { 'base_model.tinylora_v.1': v[1]! }),
      ...{ tinylora_A: A, tinylora_B: B, tinylora_P: P },
    },
    second: { tinylora_A: drawn(r, inputs), tinylora_B: drawn(outputs, r), tinylora_P: projections(0) },
    weight(W) {
      const mine = v[tying === 1 ? 0 : 1]!.values;
      const R = zeros(r, r).map((row, i) =>
        row.map((_, j) => mine.reduce((sum, x, k) => sum + x * P.values[k * r * r + i * r + j]!, 0)),
      );
      const change = times(times(matrixOf(B), R), matrixOf(A));
      return plus(W, stored ? turned(change) : change);
    },
  };
}

/** PEFT tuners/lily/layer.py: `forward`, where softmax over one is 1. */
export function lily(scaling: number): Case {
  const [outputs, inputs, r] = [7, 5, 3];
  const [A, B] = [drawn(r, inputs), drawn(r, outputs)];
  return {
    ...{ type: 'LILY', outputs, inputs },
    config: { r, num_B: 1, stride_A: 2, ...(scaling === 1 ? {} : { scaling }) },
    parts: { 'lily_A.weight': A, 'lily_B.weight': B, 'lily_router.weight': drawn(1, r) },
    weight: (W) => plus(W, times(turned(matrixOf(B)), matrixOf(A)), scaling),
  };
}

/** PEFT 0.19 tuners/bone/layer.py: `get_delta_weight_bone`, and `get_delta_weight` of bat. */
export function bone(outputs: number, inputs: number, r: number, bat: boolean): Case {
  const block = bat ? drawn(outputs / r, r, r) : drawn(r, outputs);
  const at = (...place: number[]) => block.values[place.reduce((sum, x, i) => sum * block.shape[i]! + x, 0)]!;
  return {
    ...{ type: 'BONE', outputs, inputs, config: { r, init_weights: bat ? 'bat' : true } },
    parts: { bone_block: block },
    weight: (W) =>
      each(W, (w, o, c) => {
        if (!bat) return w + at(c % r, o);
        const [group, start] = [Math.floor(o / r), c - (c % r)];
        let sum = w + at(group, o % r, c % r);
        for (let k = 0; k < r; k++) sum += W[o]![start + k]! * at(group, k, c % r);
        return sum;
      }),
  };
}

/** PEFT tuners/beft/layer.py: `merge`. */
export function beft(): Case {
  const b = drawn(1, 7);
  return {
    ...{ type: 'BEFT', outputs: 7, inputs: 5, parts: { beft_bias: b }, weight: (W) => W },
    bias: (before) => plus(before, turned(matrixOf(b))),
  };
}
