/** What models changed from their base, by samples that are read before anything large is: data, and one line of words. */
import { formatBytes, formatCounted, formatPercent } from '../formats/quantity';

export interface SampledChanges {
  /** Bytes that were asked for. */
  bytes: number;
  tensors: number;
  /** ‖τ‖ / ‖W₀‖ on the samples. */
  contributors: { id: string; distance: number }[];
  pairs: ChangePair[];
}

/** Two contributors, by their indices. */
export interface ChangePair {
  a: number;
  b: number;
  cosine: number;
  /** Of the elements that are among the largest fifth of both changes, the share with opposite signs: 0.5 by chance. */
  conflict: number;
  /** ‖VaᵀVb‖² / k of the k leading right singular vectors of both, and what two random subspaces have. */
  overlap: number;
  chance: number;
}

/** One line; of several pairs from the least to the most. */
export function sampledWords(
  { bytes, tensors, contributors, pairs }: SampledChanges,
  names: readonly string[],
): string {
  const distances = contributors.map(({ distance }) => distance);
  const moved = contributors.map((_, i) => `${names[i]} moved ${formatPercent(distances[i]!)}`);
  const ratio = Math.max(...distances) / Math.min(...distances);
  // a model that is its base where it was looked at has nothing to compare
  const known = pairs.filter(({ a, b }) => distances[a]! > 0 && distances[b]! > 0);
  const range = (of: (pair: ChangePair) => number) => {
    const [least, most] = [Math.min, Math.max].map((end) => formatPercent(end(...known.map(of))));
    return least === most ? least : `${least} to ${most}`;
  };
  return [
    `From the base ${moved.join(', ')}`,
    ...(known.length === 0
      ? []
      : [
          ...(Number.isFinite(ratio) ? [`norms 1 : ${ratio.toFixed(1)}`] : []),
          `signs oppose in ${range(({ conflict }) => conflict)} of what both changed most (50 % by chance)`,
          `subspaces overlap by ${range(({ overlap }) => overlap)} (${range(({ chance }) => chance)} by chance)`,
        ]),
    `sampled from ${formatCounted(tensors, 'tensor')}, ${formatBytes(bytes)}`,
  ].join('; ');
}
