import { pairCount } from '../../backend/kernels/products';
import type { MergeCounts, TensorReport } from '../../reports/job';
import { type Products, productsOf } from './products';
import type { TensorTask } from './tensor-task';

/** Receives the encoded bytes of a tensor, tile after tile. */
export type Emit = (bytes: Uint8Array<ArrayBuffer>) => Promise<void>;

/** Statistics of a tensor's merge, besides its bytes. */
export type TensorStatistics = Pick<
  TensorReport,
  'contributors' | 'signConflict' | 'cosine' | 'baseNorm' | 'outputChange' | 'nonFinite' | 'counts'
>;

/** A symmetric matrix of products, summed in f64 from the block sums of the inner products. */
export class ProductSums {
  /** @param sums of all pairs i ≤ j, row by row */
  constructor(
    private readonly count: number,
    readonly sums = new Float64Array(pairCount(count)),
  ) {}

  /** Adds the block sums of one tile, in block order; `words` from one block to the next. */
  add(blocks: Float32Array, words = this.sums.length): void {
    const pairs = this.sums.length;
    for (let at = 0; at < blocks.length; at += words) {
      for (let pair = 0; pair < pairs; pair++) this.sums[pair]! += blocks[at + pair]!;
    }
  }

  /** ⟨vᵢ, vⱼ⟩ */
  at(i: number, j: number): number {
    const a = Math.min(i, j);
    return this.sums[a * this.count - (a * (a - 1)) / 2 + Math.abs(i - j)]!;
  }

  norm(i: number): number {
    return Math.sqrt(this.at(i, i));
  }

  /** The products of vectors first … count − 1, numbered from 0. */
  products(first: number): Products {
    return productsOf(this.sums, this.count, first);
  }

  /** Pairwise cosine of vectors first … count − 1; 0 where one of them is zero. */
  cosines(first: number): number[][] {
    const all: number[][] = [];
    for (let i = first; i < this.count; i++) {
      const row: number[] = [];
      for (let j = first; j < this.count; j++) {
        const scale = this.norm(i) * this.norm(j);
        const isSound = scale > 0 && Number.isFinite(scale);
        row.push(isSound ? Math.max(-1, Math.min(1, this.at(i, j) / scale)) : 0);
      }
      all.push(row);
    }
    return all;
  }
}

/** The statistics of a merge that selects nothing by itself: norms and cosines of the vectors it works on. */
export function vectorStatistics(
  { plan, form }: Pick<TensorTask, 'plan' | 'form'>,
  sums: { readonly products: ProductSums; nonFinite: number; counts(): MergeCounts },
  /** Σ (out − W₀)², and how many values were kept of each vector, where not all. */
  found: { change: number; kept?: readonly number[] },
): TensorStatistics {
  const { products } = sums;
  return {
    contributors: plan.models.map((m, i) => {
      const kept = found.kept?.[i] ?? plan.elements;
      const norm = products.norm(i + 1);
      // the norms are of whole vectors
      return { id: m.id, kept, threshold: 0, norm, keptNorm: kept === plan.elements ? norm : null };
    }),
    signConflict: 0,
    cosine: products.cosines(1),
    baseNorm: form === 'delta' ? products.norm(0) : 0,
    outputChange: ratio(Math.sqrt(found.change), products.norm(0)),
    nonFinite: sums.nonFinite,
    counts: sums.counts(),
  };
}

/** A ratio that is 0 where its denominator is, so that reports hold no NaN. */
export function ratio(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}
