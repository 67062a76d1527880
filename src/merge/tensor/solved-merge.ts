/**
 * Methods of the form out = W₀ + λ·τ with a τ that was solved ahead of the run (merge/tensor/prepared.ts), or, for tensors
 * where nothing was solved, with τ = Σ cᵢτᵢ: rows weighted as prepared, else the mean.
 */

import type { SolvedCompute } from '../method';
import type { TensorPlan } from '../plan/plan';
import { layOut, runWeightedSum, type WeightedSum, WHOLE } from './affine';
import { TileSums } from './finished-tile';
import type { Prepared, PreparedSolution } from './prepared';
import { type Emit, type TensorStatistics, vectorStatistics } from './tensor-outcome';
import type { TensorTask } from './tensor-task';
import type { Tile } from './tiles';
import { rowLength } from './vector-groups';

/** The plan of a solved tensor: nothing is read but the base, and slot 1 takes the solution. */
export function solvedPlan(plan: TensorPlan): TensorPlan {
  const { base } = plan;
  if (!base) throw new Error(`${plan.name} was solved without a base`);
  const view = { origin: base.origin, onBase: true };
  return { ...plan, models: [{ id: 'merged', view, parameters: {} }] };
}

/** Merges one tensor. @throws AmalgamError `NonFinite` */
export async function mergeSolved(
  task: TensorTask,
  compute: SolvedCompute,
  settings: { nonFinite: 'stop' | 'carry'; prepared: Prepared },
  emit: Emit,
): Promise<TensorStatistics> {
  const { plan, work } = task;
  const { engine, stride } = work;
  const lambda = compute.lambda(plan.parameters);
  const solution = settings.prepared.solution(plan.name);
  const sums = new TileSums(task, settings.nonFinite);
  const weights = solution ? undefined : settings.prepared.rowWeights(plan.name);
  await task.pass(async (tile, elements) => {
    if (solution) {
      const values = await solution.values(tile.begin, tile.end);
      engine.write(work.values, stride * 4, new Uint8Array(values.buffer, values.byteOffset, elements * 4));
    }
    runSum(task, weights ? rowSum(plan, weights, lambda, tile) : meanSum(plan, lambda), elements);
    await sums.finish(elements, false, emit);
  });
  const statistics = vectorStatistics(plan, sums, {
    change: sums.change,
  });
  const baseNorm = sums.products.norm(0);
  return solution ? { ...statistics, baseNorm, ...reported(solution) } : statistics;
}

function reported({ contributors, cosine }: PreparedSolution) {
  return { contributors, cosine };
}

/** W₀ + λ·mean(τᵢ); of the one solved τ itself. */
function meanSum({ models }: TensorPlan, lambda: number): WeightedSum {
  return layOut([[1, ...models.map(() => lambda / models.length)]], 'changes', { slot: 0, per: WHOLE });
}

/** W₀ + λ·Σ cᵢ(row)·τᵢ for the rows of a tile. */
function rowSum(
  { shape, models }: TensorPlan,
  weights: readonly Float64Array[],
  lambda: number,
  { begin, end }: Tile,
): WeightedSum {
  const cols = rowLength(shape);
  const lists = Array.from({ length: (end - begin) / cols }, (_, r) => [
    1,
    ...models.map((_, i) => lambda * weights[i]![begin / cols + r]!),
  ]);
  return layOut(lists, 'changes', { slot: 0, per: cols });
}

function runSum(task: TensorTask, sum: WeightedSum, elements: number): void {
  const { engine } = task.work;
  const table = engine.allocate(sum.table.byteLength, 'coefficients');
  engine.write(table, 0, new Uint8Array(sum.table.buffer));
  runWeightedSum(task, sum, table, elements);
  engine.free(table);
}
