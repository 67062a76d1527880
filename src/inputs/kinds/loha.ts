import type { AdapterKind } from './kind';

/** LoHa (arXiv:2108.06098; PEFT tuners/loha/layer.py), as one product of rank r₁·r₂ (Khatri–Rao). */
export const loha: AdapterKind = {
  type: 'LOHA',
  title: 'LoHa',
  formula: 'W + α/r · (A₁·B₁) ∘ (A₂·B₂)',
  parts: ['hada_w1_a', 'hada_w1_b', 'hada_w2_a', 'hada_w2_b'],
  fields: ['alpha', 'rank_dropout', 'module_dropout', 'use_effective_conv2d', 'init_weights', 'r2'],
  update({ parts, alpha, outputs, inputs, setting, flag, refuse }) {
    if (setting('init_weights') === 'abba' || flag('use_khatri_rao', false)) refuse('is an ABBA adapter');
    const first = parts.hada_w1_b!.shape[0]!;
    const second = parts.hada_w2_b!.shape[0]!;
    const rank = first * second;
    return {
      form: 'product',
      rank,
      scale: alpha / first,
      left({ hada_w1_a, hada_w2_a }) {
        const out = new Float32Array(outputs * rank);
        for (let o = 0; o < outputs; o++) {
          for (let k = 0; k < rank; k++) {
            const i = Math.floor(k / second);
            out[o * rank + k] = hada_w1_a![o * first + i]! * hada_w2_a![o * second + (k % second)]!;
          }
        }
        return out;
      },
      right({ hada_w1_b, hada_w2_b }) {
        const out = new Float32Array(rank * inputs);
        for (let k = 0; k < rank; k++) {
          const i = Math.floor(k / second);
          for (let c = 0; c < inputs; c++) {
            out[k * inputs + c] = hada_w1_b![i * inputs + c]! * hada_w2_b![(k % second) * inputs + c]!;
          }
        }
        return out;
      },
    };
  },
};
