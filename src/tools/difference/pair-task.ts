/** Two versions of a tensor at work: Δ = tuned − base tile by tile, what there is to know of it, and Δ as a matrix. */

import type { BackendBuffer } from '../../backend/backend';
import { BLOCK } from '../../backend/kernel';
import { PANEL_CHUNK } from '../../backend/kernels/products';
import {
  DIFFERENCE_WORDS,
  difference,
  differenceStored,
  rowSegments,
} from '../../backend/kernels/statistics';
import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { TensorPlan } from '../../merge/plan/plan';
import { bytesPerElement, DEFAULT_DEVICE_BYTES } from '../../merge/tensor/device-budget';
import type { DeltaMatrix, MatrixShape } from '../../merge/tensor/panel-products';
import { openTask, type TensorTask } from '../../merge/tensor/tensor-task';
import type { Tile } from '../../merge/tensor/tiles';
import { openWorkspace, tileElementsFor, type Workspace, wholeArrays } from '../../merge/tensor/workspace';
import { tensorRole } from '../../models/tensor-role';
import { throwIfCanceled } from '../../sources/cancellation';
import { joinSums, noSums, type PairSums } from './tensor-difference';
import { cutRows, matrixShape, pairBytes, pairElements, piecesOf, type TensorPair } from './tensor-pairs';

/** So much of a Δ stays on the device, so that a decomposition need not make it again; threads share it. */
const RESIDENT_BYTES = 128 * 2 ** 20;

/** The buffers of a tile, and one for what stays of a Δ, which is as large as the largest that stayed. */
export interface PairWorkspace extends Workspace {
  staying(bytes: number): BackendBuffer;
}

export interface OpenTensorPair extends MatrixShape {
  pair: TensorPair;
  /** The element that it begins with. */
  first: number;
  work: PairWorkspace;
  task: TensorTask;
  /** The pieces that are opened. */
  pieces: readonly Tile[];
  /** Elements of Δ, from the first on, that stay on the device. What lies behind them is not kept without `rest`. */
  staying: number;
  /** The tiles behind them, with Δ in slot 1. */
  rest?: TensorTask;
  /** Buffers for what stays of Δ, and for its sums; made at the first call. @throws `GpuOutOfMemory` */
  device(): { delta: BackendBuffer; sums: BackendBuffer };
  close(): void;
}

/**
 * Buffers for any of `pairs`. A tile holds 64 rows of each even on one of several threads, whose tiles are small, where a
 * single engine's tile would: products depend on how rows are grouped where fewer fit.
 */
export function openPairWorkspace(
  engine: Workspace['engine'],
  pairs: readonly TensorPair[],
  tileElements?: number,
  threads = 1,
): PairWorkspace {
  const largest = pairs.reduce((most, pair) => Math.max(most, pairElements(pair)), 1);
  const chunk = (pair: TensorPair) =>
    Math.min(pairElements(pair), PANEL_CHUNK * matrixShape(pair.base.shape).cols);
  const rows = pairs.reduce((most, pair) => Math.max(most, chunk(pair)), 1);
  const alone = Math.floor(DEFAULT_DEVICE_BYTES / bytesPerElement(2));
  const least = threads > 1 ? Math.min(rows, alone) : undefined;
  const tile = tileElementsFor(engine, 2, largest, tileElements, least);
  // two versions besides the slot for a merge's base
  const work = openWorkspace(engine, 2, tileElements ? tile : wholeArrays(tile, Math.min(tile, rows)));
  let delta: BackendBuffer | undefined;
  const release = () => {
    if (delta) engine.free(delta);
    delta = undefined;
  };
  return {
    ...work,
    staying(bytes) {
      if (!delta || delta.byteLength < bytes) {
        release();
        delta = engine.allocate(bytes, 'difference');
      }
      return delta;
    },
    close() {
      release();
      work.close();
    },
  };
}

/** How many elements of a Δ may stay on one of so many threads. */
function stayingOn(threads: number, elements: number): number {
  return Math.min(elements, Math.floor(RESIDENT_BYTES / threads / 4));
}

/** The tiles that stay of a Δ: all, or as many as leave room for one more. */
function stayingTiles(tiles: readonly Tile[], room: number, largestTile: number): number {
  if ((tiles.at(-1)?.end ?? 0) <= room) return tiles.length;
  return tiles.filter(({ end }) => end <= room - largestTile).length;
}

interface PairOptions {
  /** Threads that share the memory for Δ. */
  threads?: number;
  /** One of {@link piecesOf}; default: all of the tensor. */
  piece?: Tile;
  /** What of Δ is left for {@link deltaMatrix}; default: all. */
  keeps?: 'all' | 'staying' | 'nothing';
}

/**
 * Opens both versions of a tensor. Reading starts with the first pass, or with `task.prefetch`; memory on the device is
 * taken then too.
 */
export function openPair(
  pair: TensorPair,
  work: PairWorkspace,
  read: ReadTensor,
  { threads = 1, piece, keeps = 'all' }: PairOptions = {},
): OpenTensorPair {
  const { engine } = work;
  const { name, base, tuned } = pair;
  const elements = pairElements(pair);
  const whole = matrixShape(base.shape);
  const pieces = piece ? [piece] : piecesOf(pair);
  const tiles = pieces.flatMap((one) => cutRows(whole, work.stride, one));
  const plan: TensorPlan = {
    name,
    shape: base.shape,
    elements,
    dtype: base.dtype,
    role: tensorRole(name, base.shape),
    models: [base, tuned].map(({ view }, index) => ({
      id: index === 0 ? 'base' : 'finetuned',
      view: { ...view, onBase: false },
      parameters: {},
    })),
    parameters: {},
    method: 'compare',
  };
  const isStored = engine.kind === 'cpu' && plan.models.every(({ view }) => !view.lowRank && !view.addend);
  const task = openTask(plan, isStored ? 'stored' : 'weights', work, read, 1, tiles);
  const largestTile = tiles.reduce((most, tile) => Math.max(most, tile.end - tile.begin), 0);
  const [first, last] = [tiles[0]!.begin, tiles.at(-1)!.end];
  const room = Math.min(Math.floor(engine.maxBufferBytes / 4), stayingOn(threads, last - first));
  const count = keeps === 'nothing' ? 0 : stayingTiles(tiles, first + room, largestTile);
  const staying = count > 0 ? tiles[count - 1]!.end - first : 0;
  const [one, other] = plan.models;
  const change = { ...plan, base: one!.view, models: [other!] };
  const again = keeps === 'all' && count < tiles.length;
  const rest = again && openTask(change, 'delta', work, read, 1, tiles.slice(count));
  const groups = tiles.reduce((most, tile) => Math.max(most, segmentsOf(tile, whole)), 0);
  let sums: BackendBuffer | undefined;
  return {
    pair,
    rows: (last - first) / whole.cols,
    cols: whole.cols,
    first,
    work,
    task,
    pieces,
    staying,
    ...(rest ? { rest } : {}),
    device() {
      sums ??= engine.allocate(groups * DIFFERENCE_WORDS * 4, 'difference sums');
      return { delta: work.staying(staying * 4), sums };
    },
    close() {
      task.close();
      if (rest) rest.close();
      if (sums) engine.free(sums);
    },
  };
}

interface VisitOptions {
  engine: Workspace['engine'];
  read: ReadTensor;
  tileElements?: number;
  signal?: AbortSignal;
  /** Stored bytes gone through, and the tensor they belong to. */
  onBytes?(bytes: number, tensor: string): void;
  onTensor?(): void;
}

/**
 * Visits the pairs that have elements one after the other, while the next one is read.
 * @throws AmalgamError `Canceled`, and what a visit throws
 */
export async function visitPairs(
  pairs: readonly TensorPair[],
  { engine, read, tileElements, signal, onBytes, onTensor }: VisitOptions,
  visit: (open: OpenTensorPair) => Promise<void>,
): Promise<void> {
  const work = openPairWorkspace(engine, pairs, tileElements);
  const open = (pair: TensorPair | undefined) => {
    const opened = pair && pairElements(pair) > 0 ? openPair(pair, work, read) : undefined;
    opened?.task.prefetch();
    return opened;
  };
  let next: OpenTensorPair | undefined;
  try {
    next = open(pairs[0]);
    for (const [i, pair] of pairs.entries()) {
      const current = next;
      next = undefined;
      try {
        next = open(pairs[i + 1]);
        throwIfCanceled(signal);
        if (current) await visit(current);
      } finally {
        current?.close();
      }
      onBytes?.(pairBytes(pair), pair.name);
      onTensor?.();
    }
  } finally {
    next?.close();
    work.close();
  }
}

/** A tile of whole rows, or a piece of one row. */
function tileShape({ begin, end }: Tile, { cols }: MatrixShape): MatrixShape {
  const elements = end - begin;
  return elements % cols === 0 ? { rows: elements / cols, cols } : { rows: 1, cols: elements };
}

function segmentsOf(tile: Tile, shape: MatrixShape): number {
  const { rows, cols } = tileShape(tile, shape);
  return rows * rowSegments(cols);
}

/** Enqueues the sums of the tile, and Δ where it stays. */
function runDifference(open: OpenTensorPair, tile: Tile, threshold: number): void {
  const { work, first, staying, task } = open;
  const { engine, status } = work;
  const { delta, sums } = open.device();
  const { rows, cols } = tileShape(tile, open);
  const keep = tile.end - first <= staying ? 1 : 0;
  const params = { rows, cols, keep, out: keep ? tile.begin - first : 0, threshold };
  if (task.form === 'stored') {
    engine.run(differenceStored, {
      params,
      buffers: { raw: task.raw, inputs: work.inputs, delta, sums, status },
    });
    return;
  }
  engine.run(difference, {
    params: { ...params, a: work.stride, b: 2 * work.stride },
    buffers: { values: work.values, delta, sums },
    groups: rows * rowSegments(cols),
  });
}

/**
 * Measures both versions in one pass; what stays of Δ is left in its buffer.
 *
 * @param threshold an f32: elements with |Δ| above it count as changed
 * @throws AmalgamError `NonFinite` naming the model, and what reading and the engine throw
 */
export async function measurePair(open: OpenTensorPair, threshold: number): Promise<PairSums> {
  return joinSums(open.pair, await measurePieces(open, threshold));
}

/** The same, piece by piece. */
export async function measurePieces(open: OpenTensorPair, threshold: number): Promise<PairSums[]> {
  const { task, work, pair, pieces, cols } = open;
  const parts = pieces.map(({ begin, end }) => ({
    ...noSums(Math.ceil((end - begin) / cols)),
    elements: end - begin,
  }));
  await task.pass(async (tile) => {
    runDifference(open, tile, threshold);
    const [bytes, status] = await work.engine.read([
      { buffer: open.device().sums, byteLength: segmentsOf(tile, open) * DIFFERENCE_WORDS * 4 },
      { buffer: work.status, byteLength: work.status.byteLength },
    ]);
    requireFinite(pair, new Uint32Array(status!.buffer));
    const piece = pieces.findIndex(({ end }) => tile.begin < end);
    addTile(parts[piece]!, tile, pieces[piece]!, open, bytes!.buffer);
  });
  const size = parts.reduce((sum, part) => sum + part.squares + part.tunedSquares + part.baseSquares, 0);
  if (!Number.isFinite(size)) throw notFinite(pair, 'Its values are too large to be computed with.');
  return parts;
}

function addTile(total: PairSums, tile: Tile, piece: Tile, shape: MatrixShape, bytes: ArrayBuffer): void {
  const floats = new Float32Array(bytes);
  const counts = new Uint32Array(bytes);
  const perRow = rowSegments(tileShape(tile, shape).cols);
  const firstRow = Math.floor(tile.begin / shape.cols) - Math.floor(piece.begin / shape.cols);
  for (let at = 0, segment = 0; at < floats.length; at += DIFFERENCE_WORDS, segment++) {
    total.absolute += floats[at]!;
    total.squares += floats[at + 1]!;
    total.baseSquares += floats[at + 2]!;
    total.tunedSquares += floats[at + 3]!;
    total.product += floats[at + 4]!;
    total.largest = Math.max(total.largest, floats[at + 5]!);
    total.changed += counts[at + 6]!;
    total.flipped += counts[at + 7]!;
    total.different += counts[at + 8]!;
    total.rowSquares[firstRow + Math.floor(segment / perRow)]! += floats[at + 1]!;
  }
}

function requireFinite(pair: TensorPair, status: Uint32Array): void {
  for (const [slot, who] of [
    [1, 'the base'],
    [2, 'the fine-tune'],
  ] as const) {
    if (status[slot]! > 0)
      throw notFinite(
        pair,
        `${counted(status[slot]!, 'value')} of ${who} ${status[slot] === 1 ? 'is' : 'are'} NaN or infinite.`,
      );
  }
}

function notFinite({ name }: TensorPair, why: string): AmalgamError {
  return new AmalgamError('NonFinite', `${name}: ${why}`, 'Check the files of that model.');
}

/**
 * Δ of a pair that has been measured. What does not stay is made again from the models in every pass, or left out where only
 * what stays was kept.
 * @throws AmalgamError `LimitExceeded` for one that is too large to stay on the device and has over-long rows
 */
export function deltaMatrix(open: OpenTensorPair): DeltaMatrix {
  const { rows, cols, first, work, staying, rest, pair } = open;
  if (rest && cols > work.stride) {
    throw new AmalgamError(
      'LimitExceeded',
      `${pair.name}: rows of ${cols} elements do not fit into tiles of ${work.stride - (work.stride % BLOCK)}.`,
      'Use a device with larger buffers.',
    );
  }
  return {
    engine: work.engine,
    rows,
    cols,
    async pass(visit) {
      if (staying > 0) await visit({ buffer: open.device().delta, first: 0, row: 0, rows: staying / cols });
      await rest?.pass(async ({ begin, end }) => {
        await visit({
          buffer: work.values,
          first: work.stride,
          row: (begin - first) / cols,
          rows: (end - begin) / cols,
        });
      });
    },
  };
}
