/**
 * Methods of the form out = W₀ + λ·τ + s·Σ wᵢτᵢ, most with s = 0. The τ was solved ahead of the run (merge/tensor/prepared.ts), is put together from singular
 * directions, or comes from the space that these span; for tensors where it is none of that τ = Σ cᵢτᵢ: rows weighted as
 * prepared, else the mean by the weights wᵢ.
 */
import type { DeltaPreset, MergeMethod, SolvedCompute, SpectralCompute } from '../method';
import type { TensorPlan } from '../plan/plan';
import { TileSums } from './delta-measure';
import { type DeltaSettings, mergeDelta } from './delta-pipeline';
import { type Prepared, type PreparedSolution, weightsOf } from './prepared';
import { layOut, runWeightedSum, type WeightedSum, WHOLE } from './products-merge';
import type { MatrixChanges, OpenChange } from './spectral';
import { type Emit, ratio, type TensorStatistics, vectorStatistics } from './tensor-outcome';
import { openTask, type TensorTask } from './tensor-task';
import { rowLength, type Tile } from './tiles';

/** s; 0 of other methods. */
export function sumOf({ parameters }: TensorPlan, { compute }: Pick<MergeMethod, 'compute'>): number {
  return compute.kind === 'solved' ? compute.sum(parameters) : 0;
}

/** The plan of a solved tensor: slot 1 takes the solution, and but for a sum nothing is read besides the base. */
export function solvedPlan(plan: TensorPlan, sums = false): TensorPlan {
  const { base } = plan;
  if (!base) throw new Error(`${plan.name} was solved without a base`);
  const view = { origin: base.origin, onBase: true };
  const merged = { id: 'merged', view, parameters: {} };
  return { ...plan, models: [merged, ...(sums ? plan.models : [])] };
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
  const scales = { lambda: compute.lambda(plan.parameters), sum: compute.sum(plan.parameters) };
  const solution = settings.prepared.solution(plan.name);
  const sums = new TileSums(task, settings.nonFinite);
  const rows = solution ? undefined : settings.prepared.rowWeights(plan.name);
  await task.pass(async (tile, elements) => {
    if (solution) {
      const values = await solution.values(tile.begin, tile.end);
      engine.write(work.values, stride * 4, new Uint8Array(values.buffer, values.byteOffset, elements * 4));
    }
    const sum = rows ? rowSum(plan, rows, scales, tile) : wholeSum(plan, scales, solution !== undefined);
    runSum(task, sum, elements);
    await sums.finish(elements, false, emit);
  });
  const statistics = vectorStatistics(task, sums, {
    change: sums.change,
  });
  return solution ? { ...statistics, ...reported(solution) } : statistics;
}

/** Merges one tensor, the changes of a matrix as the method says, others by their mean. @throws AmalgamError `NonFinite` */
export async function mergeSpectral(
  task: TensorTask,
  compute: SpectralCompute,
  { nonFinite, seed }: { nonFinite: 'stop' | 'carry'; seed: number },
  emit: Emit,
): Promise<TensorStatistics> {
  const { plan } = task;
  const lambda = compute.lambda(plan.parameters);
  const sums = new TileSums(task, nonFinite);
  const isSolved = (await isAllFinite(task, sums)) && isMatrix(plan);
  const solve = (changes: MatrixChanges) => compute.change(changes, plan.parameters);
  const change = isSolved ? await (await import('./spectral')).openChange(task, solve, seed) : undefined;
  await lastPass(task, sums, change, change ? withChange(lambda) : wholeSum(plan, { lambda, sum: 0 }), emit);
  return vectorStatistics(task, sums, { change: sums.change });
}

/** Whether a preset is computed in the space of singular directions that the changes of a matrix span together. */
export function isShared(plan: Pick<TensorPlan, 'shape' | 'role'>, { space }: DeltaPreset): boolean {
  return space === 'knots' && isMatrix(plan);
}

/**
 * Merges one matrix in that space: kept elements, thresholds and conflicts are those of its coordinates. What holds NaN or
 * infinities has no such space, and is merged as it is. @throws AmalgamError `NonFinite`
 */
export async function mergeInSharedSpace(
  task: TensorTask,
  settings: DeltaSettings,
  emit: Emit,
): Promise<TensorStatistics> {
  const { plan, work, read } = task;
  const measured = new TileSums(task, settings.nonFinite);
  const space = (await isAllFinite(task, measured))
    ? await (await import('./shared-space')).openSharedSpace(task, settings)
    : undefined;
  if (!space) return mergeDelta(task, settings, emit);
  const { change, statistics } = space;
  const last = openTask(solvedPlan(plan), 'delta', work, read);
  const sums = new TileSums(last, settings.nonFinite);
  try {
    await lastPass(last, sums, change, withChange(1), emit);
  } finally {
    last.close();
  }
  const baseNorm = measured.products.norm(0);
  return {
    ...statistics,
    baseNorm,
    outputChange: ratio(Math.sqrt(sums.change), baseNorm),
    nonFinite: sums.nonFinite,
    counts: { ...statistics.counts!, atBase: sums.counts().atBase },
  };
}

/** Measures all slots. @throws AmalgamError `NonFinite` */
async function isAllFinite(task: TensorTask, sums: TileSums): Promise<boolean> {
  await task.pass((_, elements) => sums.measure(elements));
  return sums.products.sums.every(Number.isFinite);
}

/** The sum of base and change in slots 0 and 1. */
const withChange = (lambda: number) => layOut([[1, lambda]], 'changes', { slot: 0, per: WHOLE });

async function lastPass(
  task: TensorTask,
  sums: TileSums,
  change: OpenChange | undefined,
  sum: WeightedSum,
  emit: Emit,
): Promise<void> {
  try {
    await task.pass(async (tile, elements) => {
      change?.fill(tile);
      runSum(task, sum, elements);
      await sums.finish(elements, true, emit);
    });
  } finally {
    change?.close();
  }
}

/** Whether a tensor is the matrix of a linear layer. */
export function isMatrix({ shape, role }: Pick<TensorPlan, 'shape' | 'role'>): boolean {
  return shape.length === 2 && role.kind === 'linear';
}

function reported({ contributors, cosine }: PreparedSolution) {
  return { contributors, cosine };
}

interface Scales {
  lambda: number;
  sum: number;
}

/** W₀ + λ·Σ wᵢτᵢ/Σ wᵢ + s·Σ wᵢτᵢ, or λ·τ of the solved τ ahead of them. */
function wholeSum({ models }: TensorPlan, { lambda, sum }: Scales, isSolved = false): WeightedSum {
  const weights = weightsOf(models);
  const all = weights.reduce((total, weight) => total + weight, 0);
  const factors = weights.map((w, i) =>
    isSolved ? (i === 0 ? lambda : sum * w) : (lambda * w) / all + sum * w,
  );
  return layOut([[1, ...factors]], 'changes', { slot: 0, per: WHOLE });
}

/** W₀ + Σ (λ·cᵢ(row) + s·wᵢ)·τᵢ for the rows of a tile. */
function rowSum(
  { shape, models }: TensorPlan,
  rows: readonly Float64Array[],
  { lambda, sum }: Scales,
  { begin, end }: Tile,
): WeightedSum {
  const cols = rowLength(shape);
  const weights = weightsOf(models);
  const lists = Array.from({ length: (end - begin) / cols }, (_, r) => [
    1,
    ...weights.map((w, i) => lambda * rows[i]![begin / cols + r]! + sum * w),
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
