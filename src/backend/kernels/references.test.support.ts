/** References in f64 for the kernels of the forward pass, from their formulas; their WebAssembly is checked against them. */
import type { WeightDtype } from '../../formats/dtype';
import { decodeToF32 } from '../../formats/half';
import type { CpuRun } from '../kernel';
import { erf } from '../special';
import { ACTIVATION_CODE, LOG_SUM_SEGMENT, NORM_CODE } from './activation';
import { columnCount, firstColumn, firstKey, GROUP_ROWS, groupAt } from './attention';

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

/** Calls `visit` for every row of every head of every group: the row's line of scores and what it sees. */
function eachLine(
  { params, u32 }: Parameters<Reference>[0],
  visit: (line: {
    at: number;
    columns: number;
    row: number;
    head: number;
    position: number;
    base: number;
    key: (c: number) => number;
  }) => void,
): void {
  const {
    groups,
    group_begin,
    heads,
    heads_per_key = 1,
    dim4 = 0,
    line_width,
    window,
  } = params as Record<string, number>;
  for (let index = 0; index < groups! * heads!; index++) {
    const head = index % heads!;
    const g = groupAt(u32('groups'), group_begin! + Math.floor(index / heads!));
    const base = firstColumn(g, window!);
    // columns past the last key take it again
    const key = (c: number) =>
      ((g.origin + Math.min(base + c, g.position + g.rows - 1)) * (heads! / heads_per_key) +
        Math.floor(head / heads_per_key)) *
      dim4 *
      4;
    for (let i = 0; i < g.rows; i++) {
      const at = (index * GROUP_ROWS + i) * line_width!;
      const columns = columnCount(g, window!);
      visit({ at, columns, row: g.row + i, head, position: g.position + i, base, key });
    }
  }
}

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
        y[at] = p.add! * y[at]! + (p.biased ? bias[o]! : 0) + p.scale! * sum;
      }
    }
  };

/** By the kernel's id, without its form. */
export const REFERENCES: Readonly<Record<string, Reference>> = {
  'matmul-f32': linear('F32'),
  'matmul-f16': linear('F16'),
  'matmul-bf16': linear('BF16'),
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
  'attention-scores': (run) => {
    const { heads, dim4, sloped, scale, cap } = run.params as Record<string, number>;
    const [q, k, scores, slopes] = [run.f32('q'), run.f32('k'), run.f32('scores'), run.f32('slopes')];
    eachLine(run, ({ at, columns, row, head, base, key }) => {
      for (let c = 0; c < columns; c++) {
        const query = (row * heads! + head) * dim4! * 4;
        const sum = total(dim4! * 4, (d) => q[query + d]! * k[key(c) + d]!);
        scores[at + c] = softCap(sum * scale!, cap!) + sloped! * slopes[head]! * (base + c);
      }
    });
  },
  'attention-mix': (run) => {
    const { heads, dim4 } = run.params as Record<string, number>;
    const [shares, v, y] = [run.f32('shares'), run.f32('v'), run.f32('y')];
    eachLine(run, ({ at, columns, row, head, key }) => {
      for (let d = 0; d < dim4! * 4; d++) {
        y[(row * heads! + head) * dim4! * 4 + d] = total(columns, (c) => shares[at + c]! * v[key(c) + d]!);
      }
    });
  },
  'attention-softmax': (run) => {
    const scores = run.f32('scores');
    eachLine(run, ({ at, columns, position, base }) => {
      const [first, end] = [firstKey(position, run.params.window!) - base, position - base + 1];
      const line = scores.slice(at, at + columns);
      const top = Math.max(...line.subarray(first, end));
      const sum = total(end - first, (c) => Math.exp(line[first + c]! - top));
      const share = (c: number) => (c < first || c >= end ? 0 : Math.exp(line[c]! - top) / sum);
      for (let c = 0; c < columns; c++) scores[at + c] = share(c);
    });
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
