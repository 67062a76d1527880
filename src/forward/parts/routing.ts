/** Which experts a token takes, and with what shares: the rules of the families' routers, in f64. */
import type { Router } from '../../models/architecture';

/** Rows that take an expert, and the share of each. */
interface Taken {
  rows: number[];
  shares: number[];
}

/**
 * For every expert the rows that take it.
 * @param scores [rows, stride]
 * @param bias added to the shares for the choice alone
 */
export function route(
  router: Router,
  scores: Float32Array,
  rows: number,
  stride: number,
  bias?: Float32Array,
): Taken[] {
  const count = router.scores.outputs;
  const taken = Array.from({ length: count }, (): Taken => ({ rows: [], shares: [] }));
  for (let r = 0; r < rows; r++) {
    const row = Float64Array.from(scores.subarray(r * stride, r * stride + count));
    for (const [expert, share] of chooseOf(router, row, bias)) {
      taken[expert]!.rows.push(r);
      taken[expert]!.shares.push(share * router.scale);
    }
  }
  return taken;
}

function chooseOf(router: Router, scores: Float64Array, bias?: Float32Array): [number, number][] {
  if (router.by === 'sparsemixer') return sparseMixer(scores, router.chosen, router.margin!);
  const shares =
    router.by === 'softmax'
      ? softmax(scores)
      : router.by === 'sigmoid'
        ? scores.map((x) => 1 / (1 + Math.exp(-x)))
        : scores;
  const merit = bias ? shares.map((share, e) => share + bias[e]!) : shares;
  const chosen = largest(router.groups ? withinGroups(merit, router.groups) : merit, router.chosen);
  const own = Float64Array.from(chosen, (e) => shares[e]!);
  const weights = router.by === 'softmax_of_chosen' ? softmax(own) : own;
  const sum = weights.reduce((a, b) => a + b, 0);
  const { normalized } = router;
  const under = normalized ? Math.max(normalized.floor, sum + normalized.added) : 1;
  return chosen.map((e, i) => [e, weights[i]! / under]);
}

/** Indices of the largest, the first one where several are equal. */
function largest(values: Float64Array, count: number): number[] {
  return Array.from(values.keys())
    .sort((a, b) => values[b]! - values[a]! || a - b)
    .slice(0, count);
}

/** Merits with −∞ outside the best groups. */
function withinGroups(
  merit: Float64Array,
  { count, chosen, summed }: NonNullable<Router['groups']>,
): Float64Array {
  const size = merit.length / count;
  const worth = Float64Array.from({ length: count }, (_, g) => {
    const own = merit.slice(g * size, (g + 1) * size);
    return largest(own, summed).reduce((sum, e) => sum + own[e]!, 0);
  });
  const kept = new Set(largest(worth, chosen));
  return merit.map((value, e) => (kept.has(Math.floor(e / size)) ? value : Number.NEGATIVE_INFINITY));
}

/** One expert after the other: the largest score left, its share among those left that come within the margin of it. */
function sparseMixer(scores: Float64Array, count: number, margin: number): [number, number][] {
  const left = scores.slice();
  return Array.from({ length: count }, (): [number, number] => {
    const [best] = largest(left, 1) as [number];
    const top = left[best]!;
    const near = left.map((score, e) =>
      (top - score) / Math.max(Math.abs(scores[e]!), top) > 2 * margin ? Number.NEGATIVE_INFINITY : score,
    );
    const share = softmax(near)[best]!;
    left[best] = Number.NEGATIVE_INFINITY;
    return [best, share];
  });
}

function softmax(scores: Float64Array): Float64Array {
  const top = Math.max(...scores);
  const powers = scores.map((x) => Math.exp(x - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((x) => x / sum);
}
