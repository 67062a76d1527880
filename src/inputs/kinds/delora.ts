import type { AdapterKind } from './kind';

/** Norms of PEFT's rank-one parts are no smaller. */
const LEAST = 1e-4;

/** DeLoRA (arXiv:2503.18225; PEFT tuners/delora/layer.py): rank-one parts of norm λ/r, scaled by the base's column norms. */
export const delora: AdapterKind = {
  type: 'DELORA',
  title: 'DeLoRA',
  formula: 'W + B · diag(λ/(r‖aᵢ‖‖bᵢ‖)) · A · diag(‖W‖ per input)',
  parts: ['delora_A', 'delora_B', 'delora_lambda', 'delora_w_norm'],
  fields: [
    'delora_lambda',
    'module_dropout',
    'init_weights',
    'use_residual_init',
    'rank_pattern',
    'lambda_pattern',
  ],
  update({ parts, inputs, outputs }) {
    const rank = parts.delora_A!.shape[0]!;
    return {
      form: 'product',
      rank,
      scale: 1,
      left: ({ delora_B }) => delora_B!,
      right({ delora_A, delora_B, delora_lambda, delora_w_norm }) {
        const out = new Float32Array(rank * inputs);
        for (let k = 0; k < rank; k++) {
          const a = delora_A!.subarray(k * inputs, (k + 1) * inputs);
          const an = Math.max(LEAST, Math.hypot(...a));
          let squares = 0;
          for (let o = 0; o < outputs; o++) squares += delora_B![o * rank + k]! ** 2;
          const scale = delora_lambda![0]! / rank / (an * Math.max(LEAST, Math.sqrt(squares)));
          for (let c = 0; c < inputs; c++) out[k * inputs + c] = scale * a[c]! * delora_w_norm![c]!;
        }
        return out;
      },
    };
  },
};
