import type { AdapterKind } from './kind';
import { cayley, cayleySeries, rotateBlocks } from './orthogonal';

/** OFT (arXiv:2306.07280; PEFT tuners/oft/layer.py): the inputs are rotated in blocks; the upper triangles are stored. */
export const oft: AdapterKind = {
  type: 'OFT',
  title: 'OFT',
  formula: 'W · diag(Q₁, Q₂, …)ᵀ, Q the Cayley transform of a skew-symmetric block',
  parts: ['oft_R'],
  fields: [
    ...['oft_block_size', 'module_dropout', 'init_weights', 'coft', 'eps', 'block_share'],
    ...['use_cayley_neumann', 'num_cayley_neumann_terms'],
  ],
  update({ parts, inputs, flag, number, refuse }) {
    if (flag('coft', false)) refuse('uses constrained rotations (coft)');
    const [count, triangle] = parts.oft_R!.shape as [number, number];
    const n = Math.round((1 + Math.sqrt(1 + 8 * triangle)) / 2);
    if (n * (n - 1) !== 2 * triangle || inputs % n !== 0 || (count !== 1 && count * n !== inputs)) {
      refuse(`has rotations of [${parts.oft_R!.shape}] for ${inputs} inputs`);
    }
    const series = flag('use_cayley_neumann', true);
    const terms = number('num_cayley_neumann_terms', 5);
    if (!(terms >= 1 && terms <= 100)) refuse(`sums ${terms} terms of its series`);
    return {
      form: 'rows',
      open({ oft_R }) {
        const blocks = Array.from({ length: count }, (_, b) => {
          const skew = new Float64Array(n * n);
          let at = b * triangle;
          for (let i = 0; i < n; i++) {
            for (let j = i + 1; j < n; j++) {
              skew[i * n + j] = oft_R![at]!;
              skew[j * n + i] = -oft_R![at++]!;
            }
          }
          return series ? cayleySeries(skew, n, terms) : cayley(skew, n);
        });
        return rotateBlocks(blocks, n);
      },
    };
  },
};
