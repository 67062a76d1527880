/**
 * KnOTS (Stoica et al. 2025): the changes of a matrix side by side have the singular vectors U; what the delta pipeline would do
 * to τᵢ it does to their coordinates Uᵀτᵢ, and U times the result is the change. Loaded when a matrix needs it.
 */
import type { TensorRef } from '../../inputs/tensor-view';
import type { TensorPlan } from '../plan/plan';
import { decomposesExactly } from './decomposition';
import { type DeltaSettings, mergeDelta } from './delta-pipeline';
import { matrixChanges, type OpenChange, openProduct } from './spectral';
import type { TensorStatistics } from './tensor-outcome';
import { openTask, type TensorTask } from './tensor-task';

/** Directions of a matrix that is neither small nor made of LoRAs: finding more of them takes too long. */
const MOST_DIRECTIONS = 256;

/** The merged change of a matrix, and what was kept in the shared space; undefined where nothing changes. */
export async function openSharedSpace(
  task: TensorTask,
  settings: DeltaSettings,
): Promise<{ change: OpenChange; statistics: TensorStatistics } | undefined> {
  const { plan, work } = task;
  const { rows, cols, each, svd, beside } = await matrixChanges(task, settings.seed);
  const all = beside(each);
  const isWhole = all.factors !== undefined || decomposesExactly(all);
  const { u } = await svd(all, isWhole ? Number.POSITIVE_INFINITY : Math.min(MOST_DIRECTIONS, rows));
  if (u.cols === 0) return undefined;
  const shape = [u.cols, cols];
  const elements = u.cols * cols;
  const values = new Map<TensorRef, Uint8Array<ArrayBuffer>>();
  const place = (key: string): TensorRef => ({
    ...{ folder: '', file: 'shared space', key, dtype: 'F32', shape, begin: 0, end: elements * 4 },
  });
  const models: TensorPlan['models'][number][] = [];
  for (const [i, model] of plan.models.entries()) {
    const origin = place(model.id);
    // column after column of τᵀU is row after row of Uᵀτ
    const { data } = await each[i]!.transposedTimes(u);
    values.set(origin, new Uint8Array(Float32Array.from(data).buffer));
    models.push({ ...model, view: { origin, onBase: false } });
  }
  const inside: TensorPlan = {
    ...{ ...plan, shape, elements, dtype: 'F32', models },
    base: { origin: place('zero'), onBase: true },
  };
  const read = async (ref: TensorRef, begin: number, end: number) =>
    values.get(ref)?.slice(begin, end) ?? new Uint8Array(end - begin);
  const merging = openTask(inside, 'delta', work, read, cols, undefined, true);
  const merged = new Float32Array(elements);
  let at = 0;
  try {
    const statistics = await mergeDelta(merging, settings, async (bytes) => {
      new Uint8Array(merged.buffer).set(bytes, at);
      at += bytes.byteLength;
    });
    const right = { rows: cols, cols: u.cols, data: Float64Array.from(merged) };
    return { change: openProduct(work, u, right), statistics: inElements(statistics, rows / u.cols) };
  } finally {
    merging.close();
  }
}

/** The shares of the coordinates as shares of the matrix. */
function inElements(statistics: TensorStatistics, factor: number): TensorStatistics {
  const { contributors, counts } = statistics;
  const scaled = (count: number) => Math.round(count * factor);
  return {
    ...statistics,
    contributors: contributors.map((c) => ({ ...c, kept: scaled(c.kept) })),
    counts: counts && {
      ...counts,
      shared: counts.shared.map((row) => row.map(scaled)),
      lost: counts.lost.map(scaled),
    },
  };
}
