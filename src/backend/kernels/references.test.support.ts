/** References in f64 for the kernels of the forward pass, from their formulas; their WebAssembly is checked against them. */
import type { WeightDtype } from '../../formats/dtype';
import { decodeToF32 } from '../../formats/half';
import type { CpuRun } from '../kernel';
import { erf } from '../special';
import { ACTIVATION_CODE, LOG_SUM_SEGMENT, NORM_CODE } from './activation';
import { firstKey, groupAt, OWN_CODE } from './attention';

type Params = Readonly<Record<string, number>>;
type Reference = (run: CpuRun & { params: Params }) => void;

const silu = (x: number) => x / (1 + Math.exp(-x));
const geluTanh = (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
const FUNCTIONS: Readonly<Record<number, (x: number) => number>> = {
  [ACTIVATION_CODE.silu]: silu,
  [ACTIVATION_CODE.gelu_erf]: (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  [ACTIVATION_CODE.gelu_tanh]: geluTanh,
  [ACTIVATION_CODE.relu]: (x) => Math.max(0, x),
};

const total = (n: number, term: (i: number) => number) => {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += term(i);
  return sum;
};

const linear =
  (dtype: WeightDtype): Reference =>
  ({ params: p, f32, u32 }) => {
    const inputs = p.inputs4! * 4;
    const words = u32('weights');
    const bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
    const w = new Float32Array(bytes.length / (dtype === 'F32' ? 4 : 2));
    decodeToF32(bytes, dtype, w);
    const [x, y, bias] = [f32('x'), f32('y'), f32('bias')];
    for (let r = 0; r < p.rows!; r++) {
      for (let o = 0; o < p.outputs!; o++) {
        const [from, to] = [r * p.x_stride4! * 4, (p.w_first! + o) * inputs];
        const sum = total(inputs, (i) => x[from + i]! * w[to + i]!);
        const at = r * p.y_stride! + p.y_begin! + o;
        y[at] = p.add! * y[at]! + (p.biased ? bias[p.w_first! + o]! : 0) + p.scale! * sum;
      }
    }
  };

/** The linear layer for few rows: norm, products of the summands, update, gate. */
const fewRows =
  (dtype: WeightDtype): Reference =>
  ({ params: p, f32, u32 }) => {
    const inputs = p.inputs4! * 4;
    const width = p.outputs! * (p.gate ? 2 : 1);
    const [x, y, weight] = [f32('x'), f32('y'), f32('norm')];
    const sums = new Float32Array(width);
    for (let r = 0; r < p.rows!; r++) {
      let row = x.slice(r * p.x_stride4! * 4, r * p.x_stride4! * 4 + inputs);
      if (p.norm_kind) {
        const size = Math.sqrt(total(inputs, (i) => row[i]! ** 2) / inputs + p.epsilon!);
        row = row.map((v, i) => (v / size) * (weight[i]! + p.norm_kind! - 1));
      }
      const one = { ...p, rows: 1, outputs: width, x_stride4: 0, y_stride: 0, y_begin: 0, add: 0 };
      const multiply = (params: Record<string, number>, y: Float32Array) =>
        linear(dtype)({ params, u32, f32: (name) => ({ x: row, y })[name] ?? f32(name) });
      multiply(one, sums);
      for (let s = 1; s < p.summands!; s++) {
        const own = new Float32Array(width);
        const first = p.w_first! + s * p.w_step!;
        multiply({ ...one, w_first: first, biased: 0 }, own);
        for (let o = 0; o < width; o++) sums[o]! += f32('bias')[first + o]! * own[o]!;
      }
      const rank = p.rank4! * 4;
      for (let o = 0; rank > 0 && o < width; o++) {
        const layer = (o >= p.second! ? 1 : 0) + (o >= p.third! ? 1 : 0);
        const [narrow, out] = [(r * p.layers! + layer) * rank, (p.w_first! + o) * rank];
        sums[o]! +=
          p.update_scale! * total(rank, (k) => f32('narrow')[narrow + k]! * f32('out_of')[out + k]!);
      }
      for (let o = 0; o < p.outputs!; o++) {
        const at = r * p.y_stride! + p.y_begin! + o;
        if (p.gate) y[at] = FUNCTIONS[p.gate - 1]!(sums[o]!) * sums[p.outputs! + o]!;
        else y[at] = p.add! * y[at]! + sums[o]!;
      }
    }
  };

/** By the kernel's id, without its form. */
export const REFERENCES: Readonly<Record<string, Reference>> = {
  'matmul-f32': linear('F32'),
  'matmul-f16': linear('F16'),
  'matmul-bf16': linear('BF16'),
  'matmul-line-f32': fewRows('F32'),
  'matmul-line-f16': fewRows('F16'),
  'matmul-line-bf16': fewRows('BF16'),
  'input-gram': ({ params: p, f32 }) => {
    const [x, s, width] = [f32('x'), f32('s'), p.width4! * 4];
    const { side = 8 } = p;
    for (let i = 0, tile = 0; i < Math.ceil(width / side); i++) {
      for (let j = 0; j <= i; j++, tile++) {
        if (tile < p.first_tile! || tile >= p.first_tile! + p.tiles!) continue;
        for (let a = side * i; a < Math.min(side * i + side, width); a++) {
          for (let b = side * j; b < Math.min(side * j + side, a + 1); b++) {
            const column = (r: number) => (p.first! + r) * p.stride4! * 4 + p.begin4! * 4;
            s[a * width + b]! += total(p.rows!, (r) => x[column(r) + a]! * x[column(r) + b]!);
            s[b * width + a] = s[a * width + b]!;
          }
        }
      }
    }
  },
  attention: ({ params, u32, f32 }) => {
    const p = params as Readonly<Record<string, number>>;
    const [q, k, v, y, own] = [f32('q'), f32('k'), f32('v'), f32('y'), f32('own')];
    const [dim, value, keyHeads] = [p.dim4! * 4, p.value4! * 4, p.heads! / p.heads_per_key!];
    for (let g = p.group_begin!; g < p.group_begin! + p.groups!; g++) {
      const { row, rows, origin, position } = groupAt(u32('groups'), g);
      for (let at = 0; at < rows * p.heads!; at++) {
        const [i, head] = [Math.floor(at / p.heads!), at % p.heads!];
        const first = firstKey(position + i, p.window!);
        const place = (c: number) => (origin + first + c) * keyHeads + Math.floor(head / p.heads_per_key!);
        const scores = Array.from({ length: position + i + 1 - first }, (_, c) => {
          const dot = total(dim, (d) => q[((row + i) * p.heads! + head) * dim + d]! * k[place(c) * dim + d]!);
          const slope = p.own_kind === OWN_CODE.slopes ? own[head]! : 0;
          return softCap(dot * p.scale!, p.cap!) + slope * (first + c);
        });
        const sink = p.own_kind === OWN_CODE.sinks ? Math.exp(own[head]!) : 0;
        const sum = scores.reduce((all, score) => all + Math.exp(score), sink);
        for (let d = 0; d < value; d++) {
          const mixed = total(scores.length, (c) => (Math.exp(scores[c]!) / sum) * v[place(c) * value + d]!);
          y[((row + i) * p.heads! + head) * value + d] = mixed;
        }
      }
    }
  },
  'log-sum': ({ params: p, f32, u32 }) => {
    const [logits, sums] = [f32('logits'), f32('sums')];
    let out = p.sums_begin!;
    for (let r = 0; r < p.rows!; r++) {
      const row = logits.subarray(r * p.stride!, r * p.stride! + p.columns!);
      for (let c = 0; c < row.length; c += LOG_SUM_SEGMENT) {
        const part = row.subarray(c, c + LOG_SUM_SEGMENT);
        const top = Math.max(...part);
        sums[out++] = top;
        sums[out++] = total(part.length, (i) => Math.exp(part[i]! - top));
      }
      const wanted = row[u32('targets')[r]! - p.first_column!];
      if (wanted !== undefined) f32('picked')[r] = wanted;
    }
  },
  activate: ({ params: p, f32 }) => {
    const [x, y] = [f32('x'), f32('y')];
    for (let r = 0; r < p.rows!; r++) {
      for (let i = 0; i < p.inner!; i++) {
        const from = r * p.x_stride! + i;
        const gate = p.gated ? x[from + p.inner!]! : 1;
        y[r * p.y_stride! + i] = FUNCTIONS[p.kind!]!(x[from]!) * gate;
      }
    }
  },
  'place-heads': ({ params: p, f32, u32 }) => {
    const [x, y, places, angles] = [f32('x'), f32('y'), u32('places'), f32('angles')];
    const half = p.half!;
    for (let e = 0; e < p.rows! * p.heads! * p.head_dim!; e++) {
      const [i, h] = [e % p.head_dim!, Math.floor(e / p.head_dim!) % p.heads!];
      const r = Math.floor(e / p.head_dim! / p.heads!);
      const inGroups = Math.floor(h / p.group!) * p.group_stride! + (h % p.group!) * p.head_stride!;
      const at = p.x_begin! + r * p.x_stride! + inGroups + i;
      const [pair, second, step] = p.adjacent
        ? [Math.floor(i / 2), i % 2 === 1, 1]
        : [i % Math.max(half, 1), i >= half, half];
      const table = places[2 * r + 1]! * 2 * half + pair;
      const rotated =
        x[at]! * angles[table]! + (second ? x[at - step]! : -x[at + step]!) * angles[table + half]!;
      const row = p.keep_rows ? r : places[2 * r]!;
      y[row * p.y_stride! + p.y_begin! + h * p.y_dim! + i] = i < 2 * half ? rotated : x[at]!;
    }
  },
  'place-projected': ({ params: p, f32, u32 }) => {
    const dim = p.head_dim!;
    const put = (name: string, begin: number, stride: number, heads: number, half: number, keep: boolean) => {
      const one = { heads, half, x_begin: begin, head_stride: stride, group: heads, group_stride: 0 };
      const to = { y_begin: 0, y_dim: dim, y_stride: heads * dim, keep_rows: keep ? 1 : 0 };
      const params = { ...p, ...one, ...to };
      REFERENCES['place-heads']!({ params, u32, f32: (of) => f32(of === 'y' ? name : of) });
    };
    put('queries', p.query_begin!, p.query_stride!, p.heads!, p.half!, true);
    put('keys', p.key_begin!, p.key_stride!, p.key_heads!, p.half!, false);
    put('values', p.value_begin!, p.value_stride!, p.key_heads!, 0, false);
  },
  'add-scaled': ({ params: p, f32 }) => {
    const [x, y] = [f32('x'), f32('y')];
    for (let e = 0; e < p.elements!; e++) y[e] = y[e]! + p.scale! * x[e]!;
  },
  'cap-logits': ({ params: p, f32 }) => {
    const x = f32('x');
    for (let e = 0; e < p.elements!; e++) x[e] = softCap(x[e]! * p.factor!, p.cap!);
  },
  norm: ({ params: p, f32 }) => {
    const [x, y, weight, bias, width] = [f32('x'), f32('y'), f32('weight'), f32('bias'), p.width4! * 4];
    for (let row = 0; row < p.rows!; row++) {
      for (let part = 0; part < p.groups!; part++) {
        const from = 4 * (p.x_begin4! + row * p.x_stride4! + part * p.group_stride4!);
        const to = 4 * row * p.y_stride4! + part * width;
        const mean = p.kind! >= NORM_CODE.layer ? total(width, (i) => x[from + i]!) / width : 0;
        const variance = total(width, (i) => (x[from + i]! - mean) ** 2) / width;
        const shift = p.kind! % 2;
        for (let i = 0; i < width; i++) {
          const normed = (x[from + i]! - mean) / Math.sqrt(variance + p.epsilon!);
          y[to + i] = normed * (weight[i]! + shift) + (p.biased ? bias[i]! : 0);
        }
      }
    }
  },
};

/** c · tanh(x / c); x itself for c = 0. */
function softCap(x: number, c: number): number {
  return c > 0 ? c * Math.tanh(x / c) : x;
}
