import type { AdapterKind } from './kind';

/** (IA)³ (arXiv:2205.05638; PEFT tuners/ia3/layer.py): outputs are scaled, bias included, or the inputs of a feed-forward. */
export const ia3: AdapterKind = {
  type: 'IA3',
  title: '(IA)³',
  formula: 'diag(l) · W, or W · diag(l) for feed-forward modules',
  parts: ['ia3_l'],
  fields: ['feedforward_modules', 'init_ia3_weights'],
  update({ parts, inputs, outputs, refuse }) {
    const [rows, columns] = parts.ia3_l!.shape;
    const onInputs = rows === 1 && columns === inputs;
    if (!onInputs && !(rows === outputs && columns === 1)) refuse('has a vector of another size');
    const along =
      ({ ia3_l }: Record<string, Float32Array>) =>
      (row: Float64Array) => {
        for (let c = 0; c < row.length; c++) row[c]! *= ia3_l![c]!;
      };
    const whole =
      ({ ia3_l }: Record<string, Float32Array>) =>
      (row: Float64Array, index: number) => {
        for (let c = 0; c < row.length; c++) row[c]! *= ia3_l![index]!;
      };
    return {
      form: 'rows',
      open: onInputs ? along : whole,
      openStored: onInputs ? whole : along,
      ...(onInputs ? {} : { bias: along }),
    };
  },
};
