/**
 * The statistics pass: one pass over every tensor that a merge would touch. Per contributor a histogram of |τ| (exact
 * counts), all scalar products, and a sample of values; memory does not grow with the model.
 */

import type { BackendBuffer } from '../../backend/backend';
import { pickValues } from '../../backend/kernels/search';
import { philox } from '../../backend/philox';
import type { OpenMember, PassTools } from '../../host/threads';
import { columns } from '../../inputs/stored-tensor';
import type { DeltaStatistics, TensorSample } from '../../reports/delta-statistics';
import { throwIfCanceled } from '../../sources/cancellation';
import { type Plan, type TensorPlan, tensorOutline } from '../plan/plan';
import { readProducts } from '../tensor/delta-measure';
import { countDigit, readDigit } from '../tensor/radix-search';
import { beginSearch, type KeySearch } from '../tensor/radix-select';
import { ProductSums } from '../tensor/tensor-outcome';
import { doraUnit, openTask, type TensorTask } from '../tensor/tensor-task';
import { leastTile, type Tile } from '../tensor/tiles';
import { openWorkspace, tileElementsFor, type Workspace, wholeArrays } from '../tensor/workspace';

export interface StatisticsWork {
  /** See {@link measurableTensors}. */
  tensors: readonly TensorPlan[];
  /** Elements of one tile; counts and samples do not depend on it. */
  tileElements?: number;
}

/** Most rows and columns of a tensor's sample, and the least of a model of very many tensors. */
const SAMPLE_SIDE = { least: 16, most: 64 };
/** Elements of all samples of a model together: 8 MiB a vector. */
const SAMPLE_ELEMENTS = 2 ** 21;

/** Rows and columns of the sample of every tensor of a model of `tensors`. */
function sampleSide(tensors: number): number {
  const side = Math.floor(Math.sqrt(SAMPLE_ELEMENTS / tensors));
  return Math.max(SAMPLE_SIDE.least, Math.min(SAMPLE_SIDE.most, side));
}

/** The tensors of a plan that have something to measure: a base, and a contributor that may differ from it. */
export function measurableTensors(plan: Plan): TensorPlan[] {
  return plan.tensors.filter((t) => t.copy === undefined && t.base !== undefined && t.elements > 0);
}

/** Opens the pass in a thread. @throws AmalgamError `Canceled`, and what sources and engine throw */
export const openStatistics: OpenMember<StatisticsWork, DeltaStatistics> = (given, tools) => {
  const { tensors } = given;
  const side = sampleSide(tensors.length);
  const work = openStatisticsWorkspace(given, tools);
  const open = (index: number) => {
    const task = openTask(tensors[index]!, 'delta', work, tools.read);
    task.prefetch();
    return { index, task };
  };
  let ahead: ReturnType<typeof open> | undefined;
  return {
    async take(index, following) {
      const { task } = ahead?.index === index ? ahead : open(index);
      ahead = following === undefined ? undefined : open(following);
      try {
        return await measureTensor(task, side, tools);
      } finally {
        task.close();
      }
    },
    close() {
      ahead?.task.close();
      work.close();
    },
  };
};

function openStatisticsWorkspace(
  { tensors, tileElements }: StatisticsWork,
  { engine, onWait }: PassTools,
): Workspace {
  const most = (of: (t: TensorPlan) => number) => tensors.reduce((peak, t) => Math.max(peak, of(t)), 1);
  const models = most((t) => t.models.length);
  const least = most((t) => leastTile(t.elements, doraUnit(t)));
  const largest = most((t) => t.elements);
  const tile = tileElementsFor(engine, models, largest, tileElements, least);
  const work = openWorkspace(engine, models, tileElements ? tile : wholeArrays(tile, least));
  return onWait ? { ...work, onWait } : work;
}

async function measureTensor(
  task: TensorTask,
  side: number,
  { signal, onDone }: PassTools,
): Promise<DeltaStatistics> {
  const { plan, work } = task;
  const { engine } = work;
  const slots = plan.models.length + 1;
  const sums = new ProductSums(slots);
  const searches = plan.models.map(
    (_, i): KeySearch => ({
      buffer: work.values,
      offset: (i + 1) * work.stride,
      search: beginSearch(plan.elements, plan.elements),
    }),
  );
  const grid = sampleGrid(plan, side);
  const picks = engine.allocate(grid.picks.byteLength, 'sample places');
  const picked = engine.allocate(grid.picks.byteLength * slots, 'sample');
  let nonFinite = 0;
  try {
    engine.write(picks, 0, new Uint8Array(grid.picks.buffer));
    engine.clear(work.bins);
    await task.pass(async (tile, elements) => {
      throwIfCanceled(signal);
      countDigit(work, searches, 0, elements);
      for (let slot = 0; slot < slots; slot++) pick(work, { picks, picked }, grid.picks.length, tile, slot);
      const read = await readProducts(task, elements);
      sums.add(read.products);
      nonFinite += read.nonFinite.reduce((a, b) => a + b, 0);
      onDone?.(elements, plan.name);
    });
    const histograms = await readDigit(work, plan.models.length);
    const [bytes] = await engine.read([{ buffer: picked, byteLength: grid.picks.byteLength * slots }]);
    const values = new Float32Array(bytes!.buffer);
    const slice = (slot: number) => values.slice(slot * grid.picks.length, (slot + 1) * grid.picks.length);
    return {
      ...tensorOutline(plan),
      products: Array.from({ length: slots }, (_, i) =>
        Array.from({ length: slots }, (__, j) => sums.at(i, j)),
      ),
      contributors: plan.models.map(({ id }, i) => ({ id, histogram: trimmed(histograms[i]!) })),
      sample: {
        rows: grid.rows,
        cols: grid.cols,
        base: slice(0),
        changes: plan.models.map((_, i) => slice(i + 1)),
      },
      nonFinite,
    };
  } finally {
    engine.free(picks);
    engine.free(picked);
  }
}

function pick(
  work: Workspace,
  buffers: { picks: BackendBuffer; picked: BackendBuffer },
  count: number,
  tile: Tile,
  slot: number,
): void {
  work.engine.run(pickValues, {
    params: {
      count,
      first: tile.begin,
      elements: tile.end - tile.begin,
      slot: slot * work.stride,
      out: slot * count,
    },
    buffers: { values: work.values, ...buffers },
  });
}

/**
 * Flat indices of a grid, one place in each of its equal cells: which one is drawn, for changes of low rank have rows and
 * columns of their own that a regular grid would hit or miss as a whole (stratified sampling, Cochran 1977).
 */
function sampleGrid(
  plan: TensorPlan,
  side: number,
): Pick<TensorSample, 'rows' | 'cols'> & { picks: Uint32Array<ArrayBuffer> } {
  const width = columns(plan);
  const height = plan.elements / width;
  const cols = Math.min(width, height === 1 ? side * side : side);
  const rows = Math.min(height, side);
  const picks = new Uint32Array(rows * cols);
  const draw = new Uint32Array(4);
  const place = (cell: number, size: number, cells: number, word: number) => {
    const begin = Math.floor((cell * size) / cells);
    const end = Math.floor(((cell + 1) * size) / cells);
    return begin + Math.floor(((end - begin) * word) / 2 ** 32);
  };
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++) {
      philox(r * cols + c, 0, rows, cols, draw);
      picks[r * cols + c] = place(r, height, rows, draw[0]!) * width + place(c, width, cols, draw[1]!);
    }
  }
  return { rows, cols, picks };
}

/** The bins from the first to the last that count anything. */
function trimmed(counts: Uint32Array): { first: number; counts: Uint32Array } {
  const first = counts.findIndex((n) => n > 0);
  if (first < 0) return { first: 0, counts: new Uint32Array(0) };
  return { first, counts: counts.slice(first, counts.findLastIndex((n) => n > 0) + 1) };
}
