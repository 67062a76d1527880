import type { AdapterKind } from './kind';

/** AdaLoRA (arXiv:2303.10512; PEFT tuners/adalora/layer.py): the divisor is the rank that is left, plus 10⁻⁵. */
export const adalora: AdapterKind = {
  type: 'ADALORA',
  title: 'AdaLoRA',
  formula: 'W + α/(r + 10⁻⁵) · B · diag(E) · A',
  parts: ['lora_A', 'lora_B', 'lora_E'],
  fields: [
    ...['init_r', 'target_r', 'tinit', 'tfinal', 'deltaT', 'beta1', 'beta2', 'orth_reg_weight', 'total_step'],
    'rank_pattern',
  ],
  update({ parts, alpha, inputs }) {
    const rank = parts.lora_A!.shape[0]!;
    return {
      form: 'product',
      rank,
      scale: (alpha > 0 ? alpha : rank) / (rank + 1e-5),
      left: ({ lora_B }) => lora_B!,
      right: ({ lora_A, lora_E }) => lora_A!.map((a, i) => a * lora_E![Math.floor(i / inputs)]!),
    };
  },
};
