import causalConvWgsl from '../../../shaders/causal-conv.wgsl?raw';
import keepRowsWgsl from '../../../shaders/keep-rows.wgsl?raw';
import { defineKernel } from '../kernel';

/** Words of a piece: first row, rows, slot, 1 where its sequence begins (shaders/causal-conv.wgsl). */
export const PIECE_WORDS = 4;

/** A convolution of each channel along its sequence. See shaders/causal-conv.wgsl. */
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
    x: 'read',
    pieces_at: 'read',
    before: 'read',
    weight: 'read',
    bias: 'read',
    y: 'read_write',
  },
  cpu({ params, f32, u32 }) {
    const { pieces, channels, taps, biased, silu, x_stride, x_begin, y_stride } = params;
    const [x, before, weight, bias, y] = [f32('x'), f32('before'), f32('weight'), f32('bias'), f32('y')];
    const at = u32('pieces_at');
    for (let p = 0; p < pieces; p++) {
      const [row, count, slot, fresh] = at.subarray(4 * p, 4 * p + 4) as unknown as [
        number,
        number,
        number,
        number,
      ];
      for (let r = 0; r < count; r++) {
        for (let c = 0; c < channels; c++) {
          let sum = biased === 1 ? bias[c]! : 0;
          for (let k = 0; k < taps; k++) {
            const from = r + k + 1 - taps;
            const value =
              from >= 0
                ? x[(row + from) * x_stride + x_begin + c]!
                : fresh === 1
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

/** The last rows of every piece, for what comes after it. See shaders/keep-rows.wgsl. */
export const keepRows = defineKernel({
  id: 'keep-rows',
  wgsl: keepRowsWgsl,
  params: { pieces: 'u32', channels: 'u32', kept: 'u32', x_stride: 'u32', x_begin: 'u32' },
  buffers: { x: 'read', pieces_at: 'read', before: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { pieces, channels, kept, x_stride, x_begin } = params;
    const [x, before] = [f32('x'), f32('before')];
    const at = u32('pieces_at');
    for (let p = 0; p < pieces; p++) {
      const [row, count, slot, fresh] = at.subarray(4 * p, 4 * p + 4) as unknown as [
        number,
        number,
        number,
        number,
      ];
      for (let c = 0; c < channels; c++) {
        // ascending: what moves up is read before it is overwritten
        for (let k = 0; k < kept; k++) {
          const from = count - kept + k;
          const line = slot * kept;
          before[(line + k) * channels + c] =
            from >= 0
              ? x[(row + from) * x_stride + x_begin + c]!
              : fresh === 1
                ? 0
                : before[(line + kept + from) * channels + c]!;
        }
      }
    }
  },
});
