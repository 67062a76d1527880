/** How much a Δ looks like a LoRA. */
import type { Spectrum } from '../../merge/tensor/decomposition';
import { columnProducts, type DeltaMatrix } from '../../merge/tensor/panel-products';
import type { LoraLikeness } from './report';

/** Singular values that are looked for and reported. */
export const SPECTRUM_VALUES = 64;
/** Values above it count, in absolute terms. */
const EFFECTIVE = 1e-5;
const MOST_OF_IT = 0.95;
/** A LoRA has a rank95 below this, and below a tenth of the smaller side. */
const LORA_RANK = 64;
const LORA_SHARE = 0.1;

/**
 * How much Δ looks like a LoRA, from its largest singular values and its exact norm, so that a truncated spectrum
 * suffices: the norm is the sum of all squares.
 *
 * @param squares ‖Δ‖², above 0
 */
export function likenessOf(
  { values, complete }: Spectrum,
  squares: number,
  smallerSide: number,
): Omit<LoraLikeness, 'exact'> {
  const found = smallestRank(values, MOST_OF_IT * (complete ? energy(values) : squares));
  const rank95 = Math.min(found ?? values.length + 1, smallerSide);
  const rank95IsBound = found === undefined && !complete;
  const effective = values.filter((s) => s > EFFECTIVE).length;
  return {
    singularValues: [...values.slice(0, SPECTRUM_VALUES)],
    effectiveRank: effective,
    effectiveRankIsBound: !complete && effective === values.length,
    rank95,
    rank95IsBound,
    potentialLora: !rank95IsBound && rank95 < LORA_RANK && rank95 < LORA_SHARE * smallerSide,
  };
}

/** The shorter side of a block of Δ, and how many times as long the other one is where a piece has few rows. */
const BLOCK_SIDE = 128;
const BLOCK_RATIO = 4;

/** What a piece of Δ proves of all of it. */
export interface Outside {
  /** At least so much of ‖Δ‖² lies outside any matrix of rank 64. */
  squares: number;
  /** At least so many singular values count. */
  effective: number;
}

/** A smaller matrix is decomposed in no time. */
const LEAST_PROVEN = 2 ** 16;

/** Whether blocks of the matrix can prove anything that is worth it. */
export function canBeFar({ rows, cols }: Pick<DeltaMatrix, 'rows' | 'cols'>): boolean {
  return Math.min(rows, cols) >= BLOCK_SIDE && cols % 4 === 0 && rows * cols >= LEAST_PROVEN;
}

/**
 * Looks at every other block of columns of Δ, or of a piece of it that stays on the device, until it is clear whether they
 * prove it to be far from a LoRA. What the best approximation of Δ leaves is, in every block B, at least what the best one of
 * B leaves. That follows from the trace t and the norm f of BᵀB: the k largest of n eigenvalues add up to
 * (k·t + √(k(n − k)(n·f² − t²)))/n at most (Mallows and Richter 1969), and above x there are (t − n·x)²/f² of them at
 * least. What f32 rounds is far less than the 1 % that is added.
 *
 * @param squares of the piece
 */
export async function lookOutside(delta: DeltaMatrix, squares: number): Promise<Outside> {
  const { cols } = delta;
  const k = LORA_RANK;
  const enough = 1.01 * (1 - MOST_OF_IT);
  const found: Outside = { squares: 0, effective: 0 };
  let seen = 0;
  const isDecided = () => found.squares > enough * squares || found.squares < enough * seen;
  await delta.pass(async (panel) => {
    if (panel.rows < BLOCK_SIDE) return;
    const wide = panel.rows < 2 * BLOCK_SIDE ? BLOCK_RATIO * BLOCK_SIDE : BLOCK_SIDE;
    const width = Math.min(wide, cols);
    const n = Math.min(panel.rows, width);
    for (let begin = 0; begin + width <= cols && !isDecided(); begin += 2 * width) {
      const products = await columnProducts(delta, panel, begin, width);
      let [trace, norm] = [0, 0];
      for (let i = 0; i < products.length; i += width + 1) trace += products[i]!;
      for (const x of products) norm += x * x;
      const inside = (k * trace + Math.sqrt(k * (n - k) * Math.max(0, n * norm - trace * trace))) / n;
      found.squares += Math.max(0, trace - 1.01 * inside);
      seen += trace;
      const above = Math.max(0, trace - n * EFFECTIVE ** 2);
      if (norm > 0) found.effective = Math.max(found.effective, above ** 2 / norm);
    }
  });
  return found;
}

/** What pieces have proven of a Δ that is far from a LoRA; undefined where they have not. @param squares ‖Δ‖² */
export function farFromLora(pieces: readonly Outside[], squares: number): LoraLikeness | undefined {
  const outside = pieces.reduce((sum, piece) => sum + piece.squares, 0);
  const effective = pieces.reduce((most, piece) => Math.max(most, piece.effective), 0);
  if (outside <= (1 - MOST_OF_IT) * squares || effective < LORA_RANK) return undefined;
  return {
    singularValues: [],
    effectiveRank: LORA_RANK,
    effectiveRankIsBound: true,
    rank95: LORA_RANK + 1,
    rank95IsBound: true,
    potentialLora: false,
    exact: false,
  };
}

/** Smallest k with Σ_{i≤k} σᵢ² ≥ wanted, or undefined where all of them do not reach it. */
export function smallestRank(values: Float64Array, wanted: number): number | undefined {
  let sum = 0;
  for (const [i, s] of values.entries()) {
    sum += s * s;
    if (sum >= wanted) return i + 1;
  }
  return undefined;
}

export function energy(values: Float64Array): number {
  return values.reduce((sum, s) => sum + s * s, 0);
}
