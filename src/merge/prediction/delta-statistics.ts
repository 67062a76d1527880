/**
 * The statistics pass: one pass over every tensor that a merge would touch. Per contributor a histogram of |τ| (exact
 * counts), all scalar products, and a sample of values; memory does not grow with the model.
 */

import type { BackendBuffer } from '../../backend/backend';
import { BLOCK } from '../../backend/kernel';
import { pickChanges, pickValues } from '../../backend/kernels/search';
import { philox } from '../../backend/philox';
import type { OpenMember, Pass, PassTools } from '../../host/threads';
import { columns } from '../../inputs/stored-tensor';
import type { DeltaStatistics, TensorSample } from '../../reports/delta-statistics';
import { throwIfCanceled } from '../../sources/cancellation';
import { type Plan, type TensorPlan, tensorOutline } from '../plan/plan';
import { readProducts, runProducts } from '../tensor/delta-measure';
import { countDigit, readDigit } from '../tensor/radix-search';
import { beginSearch, type KeySearch } from '../tensor/radix-select';
import { changesStored, runMeasure } from '../tensor/stored-changes';
import { ProductSums } from '../tensor/tensor-outcome';
import { doraUnit, openTask, type TensorTask } from '../tensor/tensor-task';
import { cutTiles, leastTile, type Tile } from '../tensor/tiles';
import { openWorkspace, tileElementsFor, type Workspace, wholeArrays } from '../tensor/workspace';

export interface StatisticsWork {
  /** See {@link measurableTensors}. */
  tensors: readonly TensorPlan[];
  /** Items of the pass. */
  pieces: readonly StatisticsPiece[];
  /** Elements of one tile; counts and samples do not depend on it. */
  tileElements?: number;
}

/** A piece of a tensor: sums are made of these, whoever measures them, so that they do not depend on threads. */
interface StatisticsPiece {
  /** Index of the tensor. */
  tensor: number;
  piece: Tile;
}

/** Most elements of a piece; all of a tensor whose rows must stay whole. */
const PIECE_ELEMENTS = 2 ** 23;

/** The work that tensors are. */
export function statisticsWork(tensors: readonly TensorPlan[], tileElements?: number): StatisticsWork {
  const pieces = tensors.flatMap((plan, tensor) => {
    const most = doraUnit(plan) > 1 ? Math.ceil(plan.elements / BLOCK) * BLOCK : PIECE_ELEMENTS;
    return cutTiles(plan.elements, most).map((piece) => ({ tensor, piece }));
  });
  return { tensors, pieces, ...(tileElements ? { tileElements } : {}) };
}

/** What there is of a piece. */
export interface MeasuredPiece {
  /** Products of all pairs of vectors. */
  products: Float64Array<ArrayBuffer>;
  /** Of every contributor. */
  histograms: Uint32Array[];
  /** Bits of the sample, vector by vector: 0 where a place lies elsewhere. */
  picked: Uint32Array<ArrayBuffer>;
  nonFinite: number;
}

/**
 * Measures all tensors, and tells of each that is done.
 * @throws AmalgamError `Canceled`, and what sources and engine throw
 */
export async function measureTensors(
  pass: Pass<MeasuredPiece>,
  { tensors, pieces }: StatisticsWork,
  onTensor?: (statistics: DeltaStatistics) => void,
): Promise<DeltaStatistics[]> {
  const side = sampleSide(tensors.length);
  const measured = tensors.map((): MeasuredPiece[] => []);
  const joined: DeltaStatistics[] = [];
  const first = tensors.map((_, tensor) => pieces.findIndex((one) => one.tensor === tensor));
  await pass.run(pieces.keys(), (part, item) => {
    const { tensor } = pieces[item]!;
    const parts = measured[tensor]!;
    parts[item - first[tensor]!] = part;
    if (Object.keys(parts).length < (first[tensor + 1] ?? pieces.length) - first[tensor]!) return;
    joined[tensor] = joinPieces(tensors[tensor]!, parts, side);
    measured[tensor] = [];
    onTensor?.(joined[tensor]);
  });
  return joined;
}

function joinPieces(plan: TensorPlan, parts: readonly MeasuredPiece[], side: number): DeltaStatistics {
  const slots = plan.models.length + 1;
  const { rows, cols } = gridOf(plan, side);
  const total = parts[0]!;
  for (const { products, histograms, picked } of parts.slice(1)) {
    for (let i = 0; i < products.length; i++) total.products[i]! += products[i]!;
    for (const [model, counts] of histograms.entries()) {
      const all = total.histograms[model]!;
      for (let bin = 0; bin < counts.length; bin++) all[bin]! += counts[bin]!;
    }
    for (let i = 0; i < picked.length; i++) total.picked[i]! |= picked[i]!;
  }
  const values = new Float32Array(total.picked.buffer);
  const slice = (slot: number) => values.slice(slot * rows * cols, (slot + 1) * rows * cols);
  const sums = new ProductSums(slots, total.products);
  return {
    ...tensorOutline(plan),
    products: Array.from({ length: slots }, (_, i) =>
      Array.from({ length: slots }, (__, j) => sums.at(i, j)),
    ),
    contributors: plan.models.map(({ id }, i) => ({ id, histogram: trimmed(total.histograms[i]!) })),
    sample: { rows, cols, base: slice(0), changes: plan.models.map((_, i) => slice(i + 1)) },
    nonFinite: parts.reduce((sum, { nonFinite }) => sum + nonFinite, 0),
  };
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
export const openStatistics: OpenMember<StatisticsWork, MeasuredPiece> = (given, tools) => {
  const { tensors, pieces } = given;
  const side = sampleSide(tensors.length);
  const work = openStatisticsWorkspace(given, tools);
  const open = (index: number) => {
    const { tensor, piece } = pieces[index]!;
    const plan = tensors[tensor]!;
    const tiles = cutTiles(piece.end - piece.begin, work.stride, doraUnit(plan)).map(({ begin, end }) => ({
      begin: piece.begin + begin,
      end: piece.begin + end,
    }));
    const form = changesStored(plan, work.engine) ? 'stored changes' : 'delta';
    const task = openTask(plan, form, work, tools.read, 1, tiles);
    task.prefetch();
    return { index, task };
  };
  let ahead: ReturnType<typeof open> | undefined;
  return {
    async take(index, following) {
      const { task } = ahead?.index === index ? ahead : open(index);
      ahead = following === undefined ? undefined : open(following);
      try {
        return await measurePiece(task, side, tools);
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

async function measurePiece(
  task: TensorTask,
  side: number,
  { signal, onDone }: PassTools,
): Promise<MeasuredPiece> {
  const { plan, work, form } = task;
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
  const places = samplePlaces(plan, side);
  const picks = engine.allocate(places.byteLength, 'sample places');
  const picked = engine.allocate(places.byteLength * slots, 'sample');
  let nonFinite = 0;
  try {
    engine.write(picks, 0, new Uint8Array(places.buffer));
    engine.clear(work.bins);
    await task.pass(async (tile, elements) => {
      throwIfCanceled(signal);
      if (form === 'stored changes') {
        runMeasure(task, tile, elements, { sums: work.sums }, { bins: work.bins });
        pickStored(task, { picks, picked }, places.length, tile);
      } else {
        countDigit(work, searches, 0, elements);
        for (let slot = 0; slot < slots; slot++) {
          pick(work, { picks, picked }, places.length, tile, slot);
        }
        runProducts(task, elements);
      }
      const read = await readProducts(task, elements);
      sums.add(read.products);
      nonFinite += read.nonFinite.reduce((a, b) => a + b, 0);
      onDone?.(elements, plan.name);
    });
    const histograms = await readDigit(work, plan.models.length);
    const [bytes] = await engine.read([{ buffer: picked, byteLength: places.byteLength * slots }]);
    return { products: sums.sums, histograms, picked: new Uint32Array(bytes!.buffer), nonFinite };
  } finally {
    engine.free(picks);
    engine.free(picked);
  }
}

function pickStored(
  { work, plan, raw }: TensorTask,
  buffers: { picks: BackendBuffer; picked: BackendBuffer },
  count: number,
  { begin, end }: Tile,
): void {
  const { engine, inputs, values, stride } = work;
  engine.run(pickChanges, {
    params: { count, first: begin, elements: end - begin, stride, models: plan.models.length },
    buffers: { raw, inputs, values, ...buffers },
  });
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

/** Places of a tensor's sample, row by row. */
function gridOf(plan: TensorPlan, side: number): Pick<TensorSample, 'rows' | 'cols'> {
  const width = columns(plan);
  const height = plan.elements / width;
  return { rows: Math.min(height, side), cols: Math.min(width, height === 1 ? side * side : side) };
}

/**
 * Flat indices of a grid, one place in each of its equal cells: which one is drawn, for changes of low rank have rows and
 * columns of their own that a regular grid would hit or miss as a whole (stratified sampling, Cochran 1977).
 */
function samplePlaces(plan: TensorPlan, side: number): Uint32Array<ArrayBuffer> {
  const width = columns(plan);
  const height = plan.elements / width;
  const { rows, cols } = gridOf(plan, side);
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
  return picks;
}

/** The bins from the first to the last that count anything. */
function trimmed(counts: Uint32Array): { first: number; counts: Uint32Array } {
  const first = counts.findIndex((n) => n > 0);
  if (first < 0) return { first: 0, counts: new Uint32Array(0) };
  return { first, counts: counts.slice(first, counts.findLastIndex((n) => n > 0) + 1) };
}
