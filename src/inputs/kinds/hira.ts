import type { AdapterKind } from './kind';

/** HiRA (ICLR 2025; PEFT tuners/hira/layer.py): every weight is scaled by a low-rank matrix. */
export const hira: AdapterKind = {
  type: 'HIRA',
  title: 'HiRA',
  formula: 'W ∘ (1 + B·A)',
  parts: ['hira_A', 'hira_B'],
  fields: ['hira_dropout', 'init_weights', 'rank_pattern'],
  update({ parts, inputs }) {
    const rank = parts.hira_A!.shape[0]!;
    return {
      form: 'rows',
      open({ hira_A, hira_B }) {
        const factor = new Float64Array(inputs);
        return (row, index) => {
          factor.fill(1);
          for (let k = 0; k < rank; k++) {
            const b = hira_B![index * rank + k]!;
            for (let c = 0; c < inputs; c++) factor[c]! += b * hira_A![k * inputs + c]!;
          }
          for (let c = 0; c < inputs; c++) row[c]! *= factor[c]!;
        };
      },
    };
  },
};
