import causalConvWgsl from '../../../shaders/sequence/causal-conv.wgsl?raw';
import keepRowsWgsl from '../../../shaders/sequence/keep-rows.wgsl?raw';
import lruScanWgsl from '../../../shaders/sequence/lru-scan.wgsl?raw';
import stateScanWgsl from '../../../shaders/sequence/state-scan.wgsl?raw';
import { defineKernel } from '../kernel';
import { sigmoid } from '../special';

/** A piece, of four words (shaders/sequence/causal-conv.wgsl): first row, rows, slot, 1 where its sequence begins. */
function pieceAt(pieces: Uint32Array, p: number) {
  const at = 4 * p;
  return { row: pieces[at]!, count: pieces[at + 1]!, slot: pieces[at + 2]!, isFresh: pieces[at + 3] === 1 };
}

/** Strips of 64 channels of every piece. */
const stripsOf = ({ pieces, channels }: Readonly<Record<'pieces' | 'channels', number>>) =>
  pieces * Math.ceil(channels / 64);

/** A convolution of each channel along its sequence. See shaders/sequence/causal-conv.wgsl. */
export const causalConv = defineKernel({
  id: 'causal-conv',
  wgsl: causalConvWgsl,
  libraries: ['special'],
  params: {
    pieces: 'u32',
    channels: 'u32',
    taps: 'u32',
    biased: 'u32',
    silu: 'u32',
    x_stride: 'u32',
    x_begin: 'u32',
    y_stride: 'u32',
  },
  buffers: {
    x: 'f32',
    pieces_at: 'u32',
    before: 'f32',
    weight: 'f32',
    bias: 'f32',
    y: 'rw f32',
  },
  work: stripsOf,
  span: () => 1,
  cpu({ params, f32, u32 }) {
    const { pieces, channels, taps, biased, silu, x_stride, x_begin, y_stride } = params;
    const [x, before, weight, bias, y] = [f32('x'), f32('before'), f32('weight'), f32('bias'), f32('y')];
    const at = u32('pieces_at');
    for (let p = 0; p < pieces; p++) {
      const { row, count, slot, isFresh } = pieceAt(at, p);
      for (let r = 0; r < count; r++) {
        for (let c = 0; c < channels; c++) {
          let sum = biased === 1 ? bias[c]! : 0;
          for (let k = 0; k < taps; k++) {
            const from = r + k + 1 - taps;
            const value =
              from >= 0
                ? x[(row + from) * x_stride + x_begin + c]!
                : isFresh
                  ? 0
                  : before[(slot * (taps - 1) + taps - 1 + from) * channels + c]!;
            sum += weight[c * taps + k]! * value;
          }
          y[(row + r) * y_stride + c] = silu === 1 ? sum / (1 + Math.exp(-sum)) : sum;
        }
      }
    }
  },
});

/** The last rows of every piece, for the next one. See shaders/sequence/keep-rows.wgsl. */
export const keepRows = defineKernel({
  id: 'keep-rows',
  wgsl: keepRowsWgsl,
  params: { pieces: 'u32', channels: 'u32', kept: 'u32', x_stride: 'u32', x_begin: 'u32' },
  buffers: { x: 'f32', pieces_at: 'u32', before: 'rw f32' },
  work: stripsOf,
  span: () => 1,
  cpu({ params, f32, u32 }) {
    const { pieces, channels, kept, x_stride, x_begin } = params;
    const [x, before] = [f32('x'), f32('before')];
    const at = u32('pieces_at');
    for (let p = 0; p < pieces; p++) {
      const { row, count, slot, isFresh } = pieceAt(at, p);
      for (let c = 0; c < channels; c++) {
        // ascending: what moves up is read before it is overwritten
        for (let k = 0; k < kept; k++) {
          const from = count - kept + k;
          const line = slot * kept;
          before[(line + k) * channels + c] =
            from >= 0
              ? x[(row + from) * x_stride + x_begin + c]!
              : isFresh
                ? 0
                : before[(line + kept + from) * channels + c]!;
        }
      }
    }
  },
});

/** Codes of shaders/sequence/state-scan.wgsl. */
export const SCAN_CODE = { space: 0, delta: 1, decay: 2 } as const;

const softplus = (x: number) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
/** A matrix state per head along every sequence: state spaces, gated delta rule, decaying attention. See shaders/sequence/state-scan.wgsl. */
export const stateScan = defineKernel({
  id: 'state-scan',
  wgsl: stateScanWgsl,
  libraries: ['special'],
  params: {
    pieces: 'u32',
    heads: 'u32',
    dim: 'u32',
    states: 'u32',
    heads_per_group: 'u32',
    decays: 'u32',
    kind: 'u32',
    x_begin: 'u32',
    x_stride: 'u32',
    b_begin: 'u32',
    c_begin: 'u32',
    bc_stride: 'u32',
    t_begin: 'u32',
    beta_begin: 'u32',
    t_stride: 'u32',
    y_stride: 'u32',
    low: 'f32',
    high: 'f32',
    beta_scale: 'f32',
    y_scale: 'f32',
  },
  buffers: {
    x: 'f32',
    bc: 'f32',
    t: 'f32',
    constants: 'f32',
    pieces_at: 'u32',
    state: 'rw f32',
    y: 'rw f32',
  },
  work: ({ pieces, heads, dim }) => pieces * heads * dim,
  span: () => 64,
  cpu({ params, f32, u32 }) {
    const { pieces, heads, dim, states, heads_per_group, decays, kind } = params;
    const [x, bc, t, y] = [f32('x'), f32('bc'), f32('t'), f32('y')];
    const constants = f32('constants');
    const state = f32('state');
    const at = u32('pieces_at');
    const bias = heads * decays;
    const direct = bias + heads;
    const h = new Float64Array(states);
    for (let p = 0; p < pieces; p++) {
      const { row, count, slot, isFresh } = pieceAt(at, p);
      for (let item = 0; item < heads * dim; item++) {
        const head = Math.floor(item / dim);
        const line = (slot * heads * dim + item) * states;
        for (let n = 0; n < states; n++) h[n] = isFresh ? 0 : state[line + n]!;
        for (let r = row; r < row + count; r++) {
          const group = r * params.bc_stride + Math.floor(head / heads_per_group) * states;
          const [b, c] = [group + params.b_begin, group + params.c_begin];
          const v = x[r * params.x_stride + params.x_begin + item]!;
          const raw = kind === SCAN_CODE.decay ? 0 : t[r * params.t_stride + params.t_begin + head]!;
          const soft = Math.min(Math.max(softplus(raw + constants[bias + head]!), params.low), params.high);
          const step = kind === SCAN_CODE.decay ? 1 : soft;
          let seen = 0;
          for (let n = 0; n < states; n++) {
            h[n]! *= Math.exp(step * constants[head * decays + (decays === 1 ? 0 : n)]!);
            seen += h[n]! * bc[b + n]!;
          }
          let u = step * v;
          if (kind === SCAN_CODE.delta) {
            const beta = params.beta_scale * sigmoid(t[r * params.t_stride + params.beta_begin + head]!);
            u = beta * (v - seen);
          }
          let sum = 0;
          for (let n = 0; n < states; n++) {
            h[n]! += u * bc[b + n]!;
            sum += h[n]! * bc[c + n]!;
          }
          y[r * params.y_stride + item] = params.y_scale * sum + constants[direct + head]! * v;
        }
        for (let n = 0; n < states; n++) state[line + n] = h[n]!;
      }
    }
  },
});

/** The real-gated linear recurrent unit along every sequence. See shaders/sequence/lru-scan.wgsl. */
export const lruScan = defineKernel({
  id: 'lru-scan',
  wgsl: lruScanWgsl,
  libraries: ['special'],
  params: { pieces: 'u32', width: 'u32', block: 'u32', x_stride: 'u32', y_stride: 'u32' },
  buffers: {
    x: 'f32',
    gates: 'f32',
    biases: 'f32',
    rates: 'f32',
    pieces_at: 'u32',
    state: 'rw f32',
    y: 'rw f32',
  },
  work: ({ pieces, width }) => pieces * width,
  span: () => 64,
  cpu({ params, f32, u32 }) {
    const { pieces, width, block, x_stride, y_stride } = params;
    const [x, gates, biases, rates] = [f32('x'), f32('gates'), f32('biases'), f32('rates')];
    const [state, y] = [f32('state'), f32('y')];
    const at = u32('pieces_at');
    for (let p = 0; p < pieces; p++) {
      const { row, count, slot, isFresh } = pieceAt(at, p);
      for (let c = 0; c < width; c++) {
        const head = Math.floor(c / block);
        const column = head * block * block + (c % block);
        let h = isFresh ? 0 : state[slot * width + c]!;
        for (let r = 0; r < count; r++) {
          const from = (row + r) * x_stride;
          let input = biases[c]!;
          let forget = biases[width + c]!;
          for (let i = 0; i < block; i++) {
            const v = x[from + head * block + i]!;
            input += v * gates[column + i * block]!;
            forget += v * gates[width * block + column + i * block]!;
          }
          const log = -8 * sigmoid(forget) * softplus(rates[c]!);
          const size = isFresh && r === 0 ? 1 : Math.sqrt(-Math.expm1(2 * log));
          h = Math.exp(log) * h + size * sigmoid(input) * x[from + c]!;
          y[(row + r) * y_stride + c] = h;
        }
        state[slot * width + c] = h;
      }
    }
  },
});
