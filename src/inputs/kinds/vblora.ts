import type { AdapterKind } from './kind';

/** VB-LoRA (arXiv:2405.15179; PEFT tuners/vblora/layer.py): factors made of vectors of one bank, mixed by the largest logits. */
export const vblora: AdapterKind = {
  type: 'VBLORA',
  title: 'VB-LoRA',
  formula: 'W + B · A, of mixed bank vectors',
  parts: ['vblora_logits_A', 'vblora_logits_B'],
  shared: ['vblora_vector_bank'],
  fields: [
    ...[
      'num_vectors',
      'vector_length',
      'topk',
      'vblora_dropout',
      'init_vector_bank_bound',
      'init_logits_std',
    ],
    'save_only_topk_weights',
  ],
  update({ parts, inputs, outputs, number, refuse }) {
    const bank = parts.vblora_vector_bank?.shape;
    const [rank, tiles, vectors] = parts.vblora_logits_A!.shape as [number, number, number];
    const outTiles = parts.vblora_logits_B!.shape[0]!;
    const length = bank?.[1] ?? refuse('does not hold its bank of vectors');
    if (tiles * length !== inputs || outTiles * length !== outputs) refuse('has logits of another size');
    const most = number('topk', 2);
    /** The mixed vector of the logits that begin at `at`. */
    const mixed = (logits: Float32Array, values: Float32Array, at: number): Float64Array => {
      const order = [...logits.subarray(at, at + vectors).keys()]
        .sort((a, b) => logits[at + b]! - logits[at + a]!)
        .slice(0, most);
      const weights = order.map((i) => Math.exp(logits[at + i]! - logits[at + order[0]!]!));
      const sum = weights.reduce((a, b) => a + b, 0);
      return Float64Array.from({ length }, (_, c) =>
        order.reduce((v, i, k) => v + (weights[k]! / sum) * values[i * length + c]!, 0),
      );
    };
    return {
      form: 'product',
      rank,
      scale: 1,
      left({ vblora_logits_B, vblora_vector_bank }) {
        const out = new Float32Array(outputs * rank);
        for (let t = 0; t < outTiles; t++) {
          for (let k = 0; k < rank; k++) {
            const vector = mixed(vblora_logits_B!, vblora_vector_bank!, (t * rank + k) * vectors);
            for (let c = 0; c < length; c++) out[(t * length + c) * rank + k] = vector[c]!;
          }
        }
        return out;
      },
      right({ vblora_logits_A, vblora_vector_bank }) {
        const out = new Float32Array(rank * inputs);
        for (let i = 0; i < rank * tiles; i++) {
          out.set(mixed(vblora_logits_A!, vblora_vector_bank!, i * vectors), i * length);
        }
        return out;
      },
    };
  },
};
