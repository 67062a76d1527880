import type { AdapterKind } from './kind';

/** RandLoRA (arXiv:2502.00987; PEFT tuners/randlora/layer.py): random bases that all modules share, scaled and summed. */
export const randlora: AdapterKind = {
  type: 'RANDLORA',
  title: 'RandLoRA',
  formula: 'W + α/r · Σⱼ Bⱼ · diag(λⱼ) · Aⱼ · diag(γⱼ)',
  parts: ['randlora_lambda', 'randlora_gamma', 'randlora_A', 'randlora_B'],
  optional: ['randlora_A', 'randlora_B'],
  shared: ['randlora_A', 'randlora_B'],
  fields: [
    ...['randlora_alpha', 'randlora_dropout', 'projection_prng_key', 'save_projection', 'sparse'],
    ...['very_sparse', 'init_weights'],
  ],
  update({ parts, inputs, outputs, number, refuse }) {
    const [a, b] = [parts.randlora_A?.shape, parts.randlora_B?.shape];
    if (!a || !b) return refuse('does not hold its random bases (save_projection: false)');
    const [rank, bases] = parts.randlora_lambda!.shape as [number, number];
    const [least, most] = [Math.min(inputs, outputs), Math.max(inputs, outputs)];
    const width = a[2]!;
    if (a[0] !== rank || a[1] !== 1 || width < least || b[0]! < most || b[1]! < bases || b[2] !== rank) {
      refuse('has random bases of another size');
    }
    const total = rank * bases;
    // PEFT numbers the columns of B base by base, and the rows of A rank by rank
    const large = ({ randlora_B }: Record<string, Float32Array>, o: number, q: number) =>
      randlora_B![o * b[1]! * rank + q]!;
    const small = (values: Record<string, Float32Array>, q: number, c: number) => {
      const [k, n] = [Math.floor(q / bases), q % bases];
      return (
        values.randlora_lambda![q]! *
        values.randlora_A![k * width + c]! *
        values.randlora_gamma![n * least + c]!
      );
    };
    const wide = least === inputs;
    return {
      form: 'product',
      rank: total,
      scale: number('randlora_alpha', 0) / rank,
      left: (values) =>
        Float32Array.from({ length: outputs * total }, (_, i) => {
          const [o, q] = [Math.floor(i / total), i % total];
          return wide ? large(values, o, q) : small(values, q, o);
        }),
      right: (values) =>
        Float32Array.from({ length: total * inputs }, (_, i) => {
          const [q, c] = [Math.floor(i / inputs), i % inputs];
          return wide ? small(values, q, c) : large(values, c, q);
        }),
    };
  },
};
