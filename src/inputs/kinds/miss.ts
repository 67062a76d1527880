import type { AdapterKind } from './kind';

/** MiSS (arXiv:2409.15371; PEFT tuners/miss/layer.py): one block, repeated along the inputs; `bat` multiplies by it too. */
export const miss: AdapterKind = {
  type: 'MISS',
  title: 'MiSS',
  formula: 'W + (D D D …), D [outputs, r]; bat: W + W·D + D',
  parts: ['miss_block'],
  fields: ['miss_dropout', 'mini_r', 'init_weights'],
  update({ parts, inputs, outputs, setting, refuse }) {
    const { shape } = parts.miss_block!;
    const bat = setting('init_weights') === 'bat';
    const [rank, columns] = bat ? [shape[2]!, 0] : [shape[0]!, shape[1]!];
    const fits = bat
      ? shape.length === 3 && shape[0]! * rank === outputs && inputs % rank === 0
      : shape.length === 2 && outputs % columns === 0;
    if (!fits) refuse(`has a block of [${shape}] for a weight of [${outputs}, ${inputs}]`);
    return {
      form: 'rows',
      open({ miss_block }) {
        const D = miss_block!;
        if (!bat) {
          return (row, index) => {
            for (let c = 0; c < inputs; c++) row[c]! += D[(c % rank) * columns + (index % columns)]!;
          };
        }
        const before = new Float64Array(rank);
        return (row, index) => {
          const block = Math.floor(index / rank) * rank * rank;
          for (let at = 0; at < inputs; at += rank) {
            before.set(row.subarray(at, at + rank));
            for (let j = 0; j < rank; j++) {
              let sum = D[block + (index % rank) * rank + j]!;
              for (let i = 0; i < rank; i++) sum += before[i]! * D[block + i * rank + j]!;
              row[at + j]! += sum;
            }
          }
        };
      },
    };
  },
};
