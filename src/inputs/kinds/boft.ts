import type { AdapterKind } from './kind';
import { cayley, rotateBlocks } from './orthogonal';

/** BOFT with one butterfly factor (arXiv:2311.06243; PEFT tuners/boft/layer.py): block rotations, then scaled outputs. */
export const boft: AdapterKind = {
  type: 'BOFT',
  title: 'BOFT',
  formula: 'diag(s) · W · diag(Q₁, Q₂, …)ᵀ',
  parts: ['boft_R', 'boft_s'],
  fields: [
    ...['boft_block_size', 'boft_block_num', 'boft_n_butterfly_factor', 'boft_dropout', 'init_weights'],
  ],
  update({ parts, inputs, refuse }) {
    const [factors, count, n] = parts.boft_R!.shape as [number, number, number];
    if (factors !== 1) refuse(`uses ${factors} butterfly factors`);
    if (count * n !== inputs) refuse(`has rotations of [${parts.boft_R!.shape}] for ${inputs} inputs`);
    return {
      form: 'rows',
      open({ boft_R, boft_s }) {
        const blocks = Array.from({ length: count }, (_, b) => {
          const at = (i: number, j: number) => boft_R![(b * n + i) * n + j]!;
          return cayley(
            Float64Array.from({ length: n * n }, (_, k) => {
              const [i, j] = [Math.floor(k / n), k % n];
              return (at(i, j) - at(j, i)) / 2;
            }),
            n,
          );
        });
        const rotate = rotateBlocks(blocks, n);
        return (row, index) => {
          rotate(row, index);
          for (let c = 0; c < row.length; c++) row[c]! *= boft_s![index]!;
        };
      },
    };
  },
};
