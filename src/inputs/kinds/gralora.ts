import type { AdapterKind } from './kind';

/** GraLoRA (arXiv:2505.20355; PEFT tuners/gralora/layer.py): k × k blocks of rank r/k each, and plain LoRA beside them. */
export const gralora: AdapterKind = {
  type: 'GRALORA',
  title: 'GraLoRA',
  formula: 'W + α/r · (B_jn · A_nj) in blocks',
  parts: ['gralora_A', 'gralora_B', 'gralora_A_general', 'gralora_B_general'],
  optional: ['gralora_A_general', 'gralora_B_general'],
  fields: ['alpha', 'gralora_dropout', 'gralora_k', 'hybrid_r', 'init_weights'],
  update({ parts, inputs, outputs, alpha, refuse }) {
    const [blocks, width, r] = parts.gralora_A!.shape as [number, number, number];
    const height = parts.gralora_B!.shape[2]!;
    if (blocks * width !== inputs || blocks * height !== outputs) refuse('has blocks of another size');
    const sub = Math.floor(r / blocks);
    const hybrid = parts.gralora_A_general?.shape[0] ?? 0;
    const inBlocks = blocks * blocks * sub;
    const rank = inBlocks + hybrid;
    return {
      form: 'product',
      rank,
      scale: alpha / (r + hybrid),
      left({ gralora_B, gralora_B_general }) {
        const out = new Float32Array(outputs * rank);
        for (let i = 0; i < outputs; i++) {
          const [j, o] = [Math.floor(i / height), i % height];
          for (let k = 0; k < blocks * sub; k++) {
            out[i * rank + j * blocks * sub + k] = gralora_B![(j * r + k) * height + o]!;
          }
          for (let k = 0; k < hybrid; k++) out[i * rank + inBlocks + k] = gralora_B_general![i * hybrid + k]!;
        }
        return out;
      },
      right({ gralora_A, gralora_A_general }) {
        const out = new Float32Array(rank * inputs);
        for (let j = 0; j < blocks; j++) {
          for (let c = 0; c < inputs; c++) {
            const [n, i] = [Math.floor(c / width), c % width];
            for (let s = 0; s < sub; s++) {
              const k = (j * blocks + n) * sub + s;
              out[k * inputs + c] = gralora_A![(n * width + i) * r + j * sub + s]!;
            }
          }
        }
        if (gralora_A_general) out.set(gralora_A_general, inBlocks * inputs);
        return out;
      },
    };
  },
};
