/**
 * MXFP4 (OCP Microscaling Formats v1.0; GPT-OSS): `x_blocks` [experts, rows, groups, 16] with two E2M1 values a byte, the lower
 * half first, times 2^(`x_scales` − 127); transformers holds the weight [experts, columns, rows] (integrations/mxfp4.py).
 */
import type { QuantizedFormat } from './format';

const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6];

export const mxfp4: QuantizedFormat = {
  find(name, ref, { tensors }) {
    if (ref.dtype !== 'U8' || !name.endsWith('_blocks') || ref.shape.length !== 4) return undefined;
    const plain = name.slice(0, -'_blocks'.length);
    const scale = tensors.get(`${plain}_scales`);
    const [experts, rows, groups, bytes] = ref.shape as [number, number, number, number];
    if (scale?.dtype !== 'U8' || bytes !== 16) return 'unscaled';
    const shape = [experts, groups * 32, rows];
    return { name: plain, format: 'MXFP4', shape, from: [ref, scale], params: { rows, groups } };
  },
  /** Experts one after the other: a weight's columns lie together, its rows are what is read. */
  async open([ref, scale], params, read) {
    const { rows, groups } = params as Record<'rows' | 'groups', number>;
    const size = rows * groups * 32;
    const values = Float32Array.from({ length: 16 }, (_, bits) => (bits & 8 ? -1 : 1) * E2M1[bits & 7]!);
    let kept: { expert: number; weights: Float32Array } | undefined;
    const expertOf = async (expert: number) => {
      if (kept?.expert === expert) return kept.weights;
      const [blocks, exponents] = await Promise.all([
        read(ref!, (expert * size) / 2, ((expert + 1) * size) / 2),
        read(scale!, expert * rows * groups, (expert + 1) * rows * groups),
      ]);
      const weights = new Float32Array(size);
      for (let g = 0; g < rows * groups; g++) {
        const power = 2 ** (exponents[g]! - 127);
        const [row, column] = [Math.floor(g / groups), (g % groups) * 32];
        for (let b = 0; b < 16; b++) {
          const byte = blocks[g * 16 + b]!;
          weights[(column + 2 * b) * rows + row] = values[byte & 15]! * power;
          weights[(column + 2 * b + 1) * rows + row] = values[byte >> 4]! * power;
        }
      }
      kept = { expert, weights };
      return weights;
    };
    return async (begin, end) => {
      const out = new Float32Array(end - begin);
      for (let at = begin; at < end; ) {
        const expert = Math.floor(at / size);
        const to = Math.min(end, (expert + 1) * size);
        out.set((await expertOf(expert)).subarray(at - expert * size, to - expert * size), at - begin);
        at = to;
      }
      return out;
    };
  },
};
