/** The end of a tile for merges outside the delta pipeline: statistics, encoding, the check for NaN and infinities. */
import { blockCount } from '../../backend/kernel';
import { ELECTION } from '../../backend/kernels/combine';
import type { MergeCounts } from '../../reports/job';
import { readProducts, runProducts } from './delta-measure';
import { CountSums } from './merge-counts';
import { type Emit, ProductSums } from './tensor-outcome';
import type { TensorTask } from './tensor-task';
import { readTile, requireFinite } from './tile-encoding';

/** Sums over the tiles of a tensor. */
export class TileSums {
  readonly products: ProductSums;
  /** Σ (out − W₀)², against zero where there is no base. */
  change = 0;
  nonFinite = 0;
  readonly #counted: CountSums;

  constructor(
    private readonly task: TensorTask,
    private readonly policy: 'stop' | 'carry',
  ) {
    this.#counted = new CountSums(task, 0);
    this.products = new ProductSums(task.plan.models.length + 1);
  }

  /** Adds the products of all slots of the tile as it stands. @throws AmalgamError `NonFinite` */
  async measure(elements: number): Promise<void> {
    const { products, nonFinite } = await readProducts(this.task, elements);
    requireFinite(this.task, nonFinite, this.policy);
    this.products.add(products);
  }

  /**
   * Emits the packed tile, whose change lies in `work.stats`.
   * @param measured whether the products have been taken in an earlier pass
   */
  async finish(elements: number, measured: boolean, emit: Emit): Promise<void> {
    const { work } = this.task;
    const blocks = blockCount(elements);
    const bytes = measured ? 0 : runProducts(this.task, elements);
    const countRange = this.#counted.run(elements, { election: ELECTION.none, zeroNegative: false });
    const [encoded, status, squares, countData, products] = await readTile(this.task, elements, [
      { buffer: work.stats, byteLength: blocks * 4 },
      countRange,
      { buffer: work.sums, byteLength: bytes },
    ]);
    this.#counted.add(countData!);
    this.nonFinite += requireFinite(this.task, status, this.policy);
    for (const square of new Float32Array(squares!.buffer)) this.change += square;
    if (!measured) this.products.add(new Float32Array(products!.buffer));
    await emit(encoded);
  }

  /** Counts over all tiles. */
  counts(): MergeCounts {
    return this.#counted.counts(ELECTION.none);
  }
}
