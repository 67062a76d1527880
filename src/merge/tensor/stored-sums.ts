/** Weighted sums of whole weights straight from their stored words, in one kernel a tile. */
import type { BackendBuffer } from '../../backend/backend';
import { blockCount } from '../../backend/kernel';
import { pairCount } from '../../backend/kernels/products';
import { MOST_STORED, storedSums, storedSumWords } from '../../backend/kernels/sums';
import type { MergeCounts } from '../../reports/job';
import type { TensorPlan } from '../plan/plan';
import type { WeightedSum } from './products-merge';
import { type Emit, ProductSums } from './tensor-outcome';
import type { TensorTask } from './tensor-task';
import { packing, readTile, requireFinite } from './tile-encoding';

/** Whether a tensor’s weights can be summed as they are stored: no adapters, and few enough. */
export function sumsStored({ base, models }: TensorPlan): boolean {
  const views = [...(base ? [base] : []), ...models.map(({ view }) => view)];
  return views.length <= MOST_STORED && views.every(({ lowRank, addend }) => !lowRank && !addend);
}

/** Sums over the tiles of a tensor that is measured as it is stored. */
export class StoredSums {
  readonly products: ProductSums;
  /** Σ (out − W₀)², against zero where there is no base. */
  change = 0;
  nonFinite = 0;
  #atBase = 0;

  constructor(
    private readonly task: TensorTask,
    private readonly policy: 'stop' | 'carry',
  ) {
    this.products = new ProductSums(task.plan.models.length + 1);
  }

  /**
   * Sums the tile whose stored words lie in `work.raw` and emits it; the sum's one table is in `coefficients`.
   * @throws AmalgamError `NonFinite`
   */
  async finish(
    { anchor }: WeightedSum,
    coefficients: BackendBuffer,
    elements: number,
    emit: Emit,
  ): Promise<void> {
    const { work, plan } = this.task;
    const { raw, inputs, packed, sums, status } = work;
    const models = plan.models.length;
    work.engine.run(storedSums[plan.base ? 'base' : 'alone'][models - 1]!, {
      params: { elements, anchor, ...packing(this.task) },
      buffers: { raw, inputs, coefficients, packed, sums, status },
    });
    const words = storedSumWords(models);
    const [encoded, found, sumBytes] = await readTile(this.task, elements, [
      { buffer: sums, byteLength: blockCount(elements) * words * 4 },
    ]);
    this.nonFinite += requireFinite(this.task, found, this.policy);
    const floats = new Float32Array(sumBytes!.buffer);
    const counts = new Uint32Array(sumBytes!.buffer);
    this.products.add(floats, words);
    for (let at = pairCount(models + 1); at < floats.length; at += words) {
      this.change += floats[at]!;
      this.#atBase += counts[at + 1]!;
    }
    await emit(encoded);
  }

  /** Counts over all tiles. */
  counts(): MergeCounts {
    return { atBase: this.task.plan.base ? this.#atBase : null, shared: [], lost: [] };
  }
}
