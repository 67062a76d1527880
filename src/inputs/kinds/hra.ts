import type { AdapterKind } from './kind';

/** HRA (arXiv:2405.17484; PEFT tuners/hra/layer.py): Householder reflections of the inputs, one after the other. */
export const hra: AdapterKind = {
  type: 'HRA',
  title: 'HRA',
  formula: 'W · (I − 2u₁u₁ᵀ) · (I − 2u₂u₂ᵀ) · …',
  parts: ['hra_u'],
  fields: ['apply_GS', 'init_weights'],
  update({ parts, inputs, flag, refuse }) {
    const [rows, rank] = parts.hra_u!.shape as [number, number];
    if (rows !== inputs) refuse(`has reflections of [${parts.hra_u!.shape}] for ${inputs} inputs`);
    const orthogonal = flag('apply_GS', false);
    return {
      form: 'rows',
      open({ hra_u }) {
        const vectors = Array.from({ length: rank }, (_, k) =>
          Float64Array.from({ length: inputs }, (_, i) => hra_u![i * rank + k]!),
        );
        const dot = (a: Float64Array, b: Float64Array) => a.reduce((sum, v, i) => sum + v * b[i]!, 0);
        for (const [k, u] of vectors.entries()) {
          for (const before of orthogonal ? vectors.slice(0, k) : []) {
            const part = dot(before, u);
            for (let i = 0; i < inputs; i++) u[i]! -= part * before[i]!;
          }
          const norm = Math.sqrt(dot(u, u));
          for (let i = 0; i < inputs; i++) u[i]! /= norm;
        }
        return (row) => {
          for (const u of vectors) {
            const twice = 2 * dot(row, u);
            for (let i = 0; i < inputs; i++) row[i]! -= twice * u[i]!;
          }
        };
      },
    };
  },
};
