/** Methods of the form out = Σ cᵢ·Wᵢ over whole weights, with coefficients known before any data is read. */
import { layOut, runWeightedSum, WHOLE } from './affine';
import { TileSums } from './finished-tile';
import { StoredSums } from './stored-sum';
import { type Emit, type TensorStatistics, vectorStatistics } from './tensor-outcome';
import type { TensorTask } from './tensor-task';

/**
 * Merges one tensor in a single pass. Reported norms and cosines are those of the whole weights; the output's change
 * is measured against the base where the recipe names one.
 * @throws AmalgamError `NonFinite`
 */
export async function mergeWeights(
  task: TensorTask,
  coefficients: readonly number[],
  nonFinite: 'stop' | 'carry',
  emit: Emit,
): Promise<TensorStatistics> {
  const { work, plan } = task;
  const sum = layOut([coefficients], 'weights', { slot: 1, per: WHOLE });
  const table = work.engine.allocate(sum.table.byteLength, 'coefficients');
  work.engine.write(table, 0, new Uint8Array(sum.table.buffer));
  const stored = task.form === 'stored' ? new StoredSums(task, nonFinite) : undefined;
  const slots = new TileSums(task, nonFinite);
  const sums = stored ?? slots;
  try {
    await task.pass(async (_, elements) => {
      if (stored) return stored.finish(sum, table, elements, emit);
      runWeightedSum(task, sum, table, elements);
      await slots.finish(elements, false, emit);
    });
  } finally {
    work.engine.free(table);
  }
  return vectorStatistics(plan, sums, {
    change: plan.base ? sums.change : 0,
  });
}
