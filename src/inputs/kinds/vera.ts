import type { AdaptedModule, AdapterKind, Product } from './kind';

const FIELDS = ['projection_prng_key', 'save_projection', 'd_initial', 'init_weights'];

/** (λ_b ∘ B[:out]) · (λ_d ∘ A[:r, :in]) of projections that all modules share. */
function scaled({ parts, inputs, outputs, refuse }: AdaptedModule, prefix: string, halved: boolean): Product {
  const [a, b] = [parts[`${prefix}_A`]?.shape, parts[`${prefix}_B`]?.shape];
  if (!a || !b) return refuse('does not hold its random projections (save_projection: false)');
  const rank = halved ? a[0]! / 2 : a[0]!;
  const [columns, width] = [a[1]!, b[1]!];
  if (columns < inputs || b[0]! < outputs || width !== rank) refuse('has projections of another size');
  return {
    form: 'product',
    rank,
    scale: 1,
    left(values) {
      const [B, scale] = [values[`${prefix}_B`]!, values[`${prefix}_lambda_b`]!];
      return B.slice(0, outputs * rank).map((v, i) => v * scale[Math.floor(i / rank)]!);
    },
    right(values) {
      const [A, scale] = [values[`${prefix}_A`]!, values[`${prefix}_lambda_d`]!];
      return Float32Array.from({ length: rank * inputs }, (_, i) => {
        const k = Math.floor(i / inputs);
        return scale[k]! * A[k * columns + (i % inputs)]!;
      });
    },
  };
}

/** VeRA (arXiv:2310.11454; PEFT tuners/vera/layer.py). */
export const vera: AdapterKind = {
  type: 'VERA',
  title: 'VeRA',
  formula: 'W + diag(λ_b) · B · diag(λ_d) · A',
  parts: ['vera_lambda_b', 'vera_lambda_d'],
  shared: ['vera_A', 'vera_B'],
  fields: ['vera_dropout', ...FIELDS],
  update: (module) => scaled(module, 'vera', false),
};

/** PVeRA (PEFT tuners/pvera/layer.py): VeRA with a distribution over the latent; merging takes its mean, the first half. */
export const pvera: AdapterKind = {
  type: 'PVERA',
  title: 'PVeRA',
  formula: 'W + diag(λ_b) · B · diag(λ_d) · A, of the mean',
  parts: ['pvera_lambda_b', 'pvera_lambda_d'],
  shared: ['pvera_A', 'pvera_B'],
  fields: ['pvera_dropout', 'sample_at_inference', 'generator_seed', ...FIELDS],
  update: (module) => scaled(module, 'pvera', true),
};
