/** Methods of the form out = Σ cᵢ·Wᵢ over whole weights, with coefficients known before any data is read. */
import { blockCount } from '../compute/kernel';
import { gram, pairCount } from '../compute/kernels/gram';
import { weightedSum } from '../compute/kernels/weighted-sum';
import { encodeTile, requireFinite } from './encode-tile';
import { type Emit, GramSums, ratio, type TensorStatistics } from './tensor-outcome';
import type { TensorTask } from './tensor-task';

/**
 * Merges one tensor in a single sweep. Reported norms and cosines are those of the whole weights; the output's change
 * is measured against the base where the recipe names one.
 * @throws AmalgamError `NonFinite`
 */
export async function mergeWeights(
  task: TensorTask,
  coefficients: number[],
  nonFinite: 'stop' | 'carry',
  emit: Emit,
): Promise<TensorStatistics> {
  const { plan, work } = task;
  const { engine, stride } = work;
  const count = plan.models.length;
  engine.write(work.coefficients, 0, new Uint8Array(new Float32Array(coefficients).buffer));
  const sums = new GramSums(count + 1);
  let bad = 0;
  await task.sweep(async (_, elements) => {
    const blocks = blockCount(elements);
    engine.run(gram, {
      params: { elements, slot: 0, stride, count: count + 1 },
      buffers: { values: work.values, sums: work.sums },
      groups: blocks,
      elements,
    });
    engine.run(weightedSum, {
      params: { elements, slot: stride, stride, count },
      buffers: { values: work.values, coefficients: work.coefficients, out: work.merged },
      groups: blocks,
      elements,
    });
    const [bytes, status, gramBytes] = await encodeTile(task, work.merged, elements, [
      { buffer: work.sums, byteLength: blocks * pairCount(count + 1) * 4 },
    ]);
    bad += requireFinite(task, status, nonFinite);
    sums.add(new Float32Array(gramBytes!.buffer));
    await emit(bytes);
  });
  return {
    contributors: plan.models.map((m, i) => ({
      id: m.id,
      kept: plan.elements,
      threshold: 0,
      norm: sums.norm(i + 1),
      keptNorm: sums.norm(i + 1),
    })),
    signConflict: 0,
    cosine: sums.cosines(1),
    outputChange: changeFromBase(sums, coefficients),
    nonFinite: bad,
  };
}

/** ‖Σ cᵢWᵢ − W₀‖ / ‖W₀‖ from the Gram matrix alone; 0 without a base. */
function changeFromBase(sums: GramSums, coefficients: number[]): number {
  const c = [-1, ...coefficients];
  let square = 0;
  for (let i = 0; i < c.length; i++)
    for (let j = 0; j < c.length; j++) square += c[i]! * c[j]! * sums.at(i, j);
  return ratio(Math.sqrt(Math.max(0, square)), sums.norm(0));
}
