/**
 * The delta pipeline in f64 and plain loops: the truth that tests hold both engines against. Written from
 * docs/methods.md, not from the pipeline; it sorts where the pipeline counts.
 */
import { maskKey, philox } from '../../backend/philox';
import type { DeltaPreset } from '../method';

export interface OracleModel {
  id: string;
  weight: number;
  density: number;
  /** Task vector as stored values give it: W − W₀ rounded to f32, or the low-rank update. */
  tau: Float64Array;
}

/** Which elements of τ are kept: exactly k by |τ| with ties to the lowest index, or the counter-based draw. */
export function oracleMask(
  model: OracleModel,
  select: DeltaPreset['select'],
  seed: number,
  tensor: string,
): Uint8Array {
  const n = model.tau.length;
  const mask = new Uint8Array(n);
  if (select === 'all' || model.density >= 1) return mask.fill(1);
  if (select === 'top-k') {
    const k = model.density === 0 ? 0 : Math.min(n, Math.max(1, Math.floor(model.density * n)));
    const order = [...mask.keys()].sort((a, b) => Math.abs(model.tau[b]!) - Math.abs(model.tau[a]!) || a - b);
    for (const e of order.slice(0, k)) mask[e] = 1;
    return mask;
  }
  const [k0, k1] = maskKey(seed, model.id, tensor);
  const words = new Uint32Array(4);
  for (let e = 0; e < n; e++) {
    philox(Math.floor(e / 4), 0, k0, k1, words);
    mask[e] = words[e % 4]! < Math.floor(model.density * 2 ** 32) ? 1 : 0;
  }
  return mask;
}

/** W₀ + λ · combine(rescale(mask ⊙ τ)) in f64. */
export function oracleMerge(
  base: Float64Array,
  models: readonly OracleModel[],
  preset: DeltaPreset,
  seed: number,
  tensor: string,
): Float64Array {
  const changes = models.map((m) => {
    const mask = oracleMask(m, preset.select, seed, tensor);
    const kept = m.tau.map((t, e) => (mask[e] ? t : 0));
    const l1 = (v: Float64Array) => v.reduce((a, b) => a + Math.abs(b), 0);
    const full = l1(m.tau);
    const part = l1(kept);
    const scale =
      m.density >= 1 || preset.rescale === 'none'
        ? 1
        : preset.rescale === '1/density'
          ? 1 / m.density
          : full < 1e-7 || part < 1e-7
            ? 1
            : full / part;
    return kept.map((t) => t * scale * m.weight);
  });
  return base.map((w, e) => {
    const d = changes.map((c) => c[e]!);
    const total = d.reduce((a, b) => a + b, 0);
    const agrees = d.map((x) => preset.consensus === 'none' || (total >= 0 ? x > 0 : x < 0));
    const mixed = d.reduce((a, x, i) => a + (agrees[i] ? x : 0), 0);
    const divisor = models.reduce(
      (a, m, i) => a + (agrees[i] ? (preset.divisor === 'count' ? 1 : m.weight) : 0),
      0,
    );
    const vanishes = preset.consensus === 'none' ? Math.abs(divisor) < 1e-8 : divisor === 0;
    return w + (preset.normalize && !vanishes ? mixed / divisor : mixed) * preset.lambda;
  });
}
