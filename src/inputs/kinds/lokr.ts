import { type AdapterKind, multiply, type PartValues } from './kind';

/** LoKr (arXiv:2212.10650; PEFT tuners/lokr/layer.py): a Kronecker product of two small matrices, each whole or of rank r. */
export const lokr: AdapterKind = {
  type: 'LOKR',
  title: 'LoKr',
  formula: 'W + α/r · W₁ ⊗ W₂',
  parts: ['lokr_w1', 'lokr_w1_a', 'lokr_w1_b', 'lokr_w2', 'lokr_w2_a', 'lokr_w2_b'],
  optional: ['lokr_w1', 'lokr_w1_a', 'lokr_w1_b', 'lokr_w2', 'lokr_w2_a', 'lokr_w2_b'],
  fields: [
    ...['alpha', 'rank_dropout', 'module_dropout', 'rank_dropout_scale', 'use_effective_conv2d'],
    ...['decompose_both', 'decompose_factor', 'init_weights'],
  ],
  update({ parts, alpha, rank, inputs, outputs, refuse }) {
    const extents = (name: string): [number, number] => {
      const whole = parts[name]?.shape;
      const [a, b] = [parts[`${name}_a`]?.shape, parts[`${name}_b`]?.shape];
      if (whole?.length === 2) return [whole[0]!, whole[1]!];
      return a?.length === 2 && b?.length === 2 ? [a[0]!, b[1]!] : refuse(`lacks ${name}`);
    };
    const factor = (values: PartValues, name: string) =>
      values[name] ?? multiply(values[`${name}_a`]!, values[`${name}_b`]!, parts[`${name}_b`]!.shape[0]!);
    const [one, two] = [extents('lokr_w1'), extents('lokr_w2')];
    if (one[0] * two[0] !== outputs || one[1] * two[1] !== inputs) refuse('has factors of another size');
    return {
      form: 'rows',
      open(values) {
        const [w1, w2] = [factor(values, 'lokr_w1'), factor(values, 'lokr_w2')];
        const scale = alpha / rank;
        return (row, index) => {
          const [o, p] = [Math.floor(index / two[0]), index % two[0]];
          for (let c = 0; c < row.length; c++) {
            const i = Math.floor(c / two[1]);
            row[c]! += scale * w1[o * one[1] + i]! * w2[p * two[1] + (c % two[1])]!;
          }
        };
      },
    };
  },
};
