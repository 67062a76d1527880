/** Two versions of a tensor at work: Δ = tuned − base tile by tile, what there is to know of it, and Δ as a matrix. */

import type { BackendBuffer } from '../../backend/backend';
import { BLOCK } from '../../backend/kernel';
import { PANEL_CHUNK } from '../../backend/kernels/products';
import { DIFFERENCE_WORDS, difference, rowSegments } from '../../backend/kernels/statistics';
import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { TensorPlan } from '../../merge/plan/plan';
import { bytesPerElement, DEFAULT_DEVICE_BYTES } from '../../merge/tensor/device-budget';
import { openTask, type TensorTask } from '../../merge/tensor/tensor-task';
import type { Tile } from '../../merge/tensor/tiles';
import { openWorkspace, tileElementsFor, type Workspace, wholeArrays } from '../../merge/tensor/workspace';
import { tensorRole } from '../../models/tensor-role';
import { throwIfCanceled } from '../../sources/cancellation';
import { pairBytes, pairElements, type TensorPair } from './tensor-pairs';

/** So much of a Δ stays on the device, so that a decomposition need not make it again; threads share it. */
const RESIDENT_BYTES = 512 * 2 ** 20;

export interface OpenPair extends MatrixShape {
  pair: TensorPair;
  work: Workspace;
  task: TensorTask;
  /** Elements of Δ, from the first on, that stay on the device. */
  staying: number;
  /** The tiles behind them, with Δ in slot 1. */
  rest?: TensorTask;
  /** Buffers for what stays of Δ and a tile of the rest, and for its sums; made at the first call. @throws `GpuOutOfMemory` */
  device(): { delta: BackendBuffer; sums: BackendBuffer };
  close(): void;
}

/** Sums over a whole tensor; `a` is the base, `b` the fine-tune. */
export interface PairSums {
  elements: number;
  /** Σ|Δ| */
  absolute: number;
  /** ΣΔ², Σa², Σb², Σab */
  squares: number;
  baseSquares: number;
  tunedSquares: number;
  product: number;
  /** max|Δ| */
  largest: number;
  /** Numbers of elements: |Δ| above the threshold, of opposite sign, with different bits. */
  changed: number;
  flipped: number;
  different: number;
  /** ΣΔ² of every row. */
  rowSquares: Float64Array;
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
): Workspace {
  const largest = pairs.reduce((most, pair) => Math.max(most, pairElements(pair)), 1);
  const chunk = (pair: TensorPair) =>
    Math.min(pairElements(pair), PANEL_CHUNK * matrixShape(pair.base.shape).cols);
  const rows = pairs.reduce((most, pair) => Math.max(most, chunk(pair)), 1);
  const alone = Math.floor(DEFAULT_DEVICE_BYTES / bytesPerElement(2));
  const least = threads > 1 ? Math.min(rows, alone) : undefined;
  const tile = tileElementsFor(engine, 2, largest, tileElements, least);
  // two versions besides the slot for a merge's base
  return openWorkspace(engine, 2, tileElements ? tile : wholeArrays(tile, Math.min(tile, rows)));
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

/**
 * Opens both versions of a tensor. Reading starts with the first pass, or with `task.prefetch`; memory on the device is
 * taken then too.
 * @param threads that share the memory for Δ
 */
export function openPair(pair: TensorPair, work: Workspace, read: ReadTensor, threads = 1): OpenPair {
  const { engine } = work;
  const { name, base, tuned } = pair;
  const elements = pairElements(pair);
  const shape = matrixShape(base.shape);
  const tiles = cutRows(shape, work.stride);
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
  const task = openTask(plan, 'weights', work, read, 1, tiles);
  const largestTile = tiles.reduce((most, tile) => Math.max(most, tile.end - tile.begin), 0);
  const room = Math.min(Math.floor(engine.maxBufferBytes / 4), stayingOn(threads, elements));
  const count = stayingTiles(tiles, room, largestTile);
  const staying = tiles[count - 1]?.end ?? 0;
  const [one, other] = plan.models;
  const change = { ...plan, base: one!.view, models: [other!] };
  const rest = count < tiles.length && openTask(change, 'delta', work, read, 1, tiles.slice(count));
  const groups = tiles.reduce((most, tile) => Math.max(most, segmentsOf(tile, shape)), 0);
  let buffers: { delta: BackendBuffer; sums: BackendBuffer } | undefined;
  return {
    pair,
    ...shape,
    work,
    task,
    staying,
    ...(rest ? { rest } : {}),
    device() {
      if (buffers) return buffers;
      const delta = engine.allocate((staying + (rest ? largestTile : 0)) * 4, 'difference');
      try {
        buffers = { delta, sums: engine.allocate(groups * DIFFERENCE_WORDS * 4, 'difference sums') };
      } catch (thrown) {
        engine.free(delta);
        throw thrown;
      }
      return buffers;
    },
    close() {
      task.close();
      if (rest) rest.close();
      for (const buffer of Object.values(buffers ?? {})) engine.free(buffer);
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
  visit: (open: OpenPair) => Promise<void>,
): Promise<void> {
  const work = openPairWorkspace(engine, pairs, tileElements);
  const open = (pair: TensorPair | undefined) => {
    const opened = pair && pairElements(pair) > 0 ? openPair(pair, work, read) : undefined;
    opened?.task.prefetch();
    return opened;
  };
  let next: OpenPair | undefined;
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

/** Enqueues Δ and the sums of the tile in the slots. */
function runDifference(open: OpenPair, tile: Tile, threshold: number): void {
  const { work, staying } = open;
  const { delta, sums } = open.device();
  const { rows, cols } = tileShape(tile, open);
  work.engine.run(difference, {
    params: {
      rows,
      cols,
      a: work.stride,
      b: 2 * work.stride,
      out: Math.min(tile.begin, staying),
      threshold,
    },
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
export async function measurePair(open: OpenPair, threshold: number): Promise<PairSums> {
  const { task, work, rows, pair } = open;
  const total: PairSums = {
    elements: pairElements(pair),
    absolute: 0,
    squares: 0,
    baseSquares: 0,
    tunedSquares: 0,
    product: 0,
    largest: 0,
    changed: 0,
    flipped: 0,
    different: 0,
    rowSquares: new Float64Array(rows),
  };
  await task.pass(async (tile) => {
    runDifference(open, tile, threshold);
    const [bytes, status] = await work.engine.read([
      { buffer: open.device().sums, byteLength: segmentsOf(tile, open) * DIFFERENCE_WORDS * 4 },
      { buffer: work.status, byteLength: work.status.byteLength },
    ]);
    requireFinite(pair, new Uint32Array(status!.buffer));
    addTile(total, tile, open, bytes!.buffer);
  });
  if (!Number.isFinite(total.squares + total.tunedSquares + total.baseSquares)) {
    throw notFinite(pair, 'Its values are too large to be computed with.');
  }
  return total;
}

function addTile(total: PairSums, tile: Tile, shape: MatrixShape, bytes: ArrayBuffer): void {
  const floats = new Float32Array(bytes);
  const counts = new Uint32Array(bytes);
  const perRow = rowSegments(tileShape(tile, shape).cols);
  const firstRow = Math.floor(tile.begin / shape.cols);
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

/** Rows of Δ on the device: row-major f32 from word `first` on. */
export interface DeltaPanel {
  buffer: BackendBuffer;
  first: number;
  row: number;
  rows: number;
}

/** Δ as a matrix that is visited panel by panel from the top. */
export interface DeltaMatrix extends MatrixShape {
  engine: Workspace['engine'];
  pass(visit: (panel: DeltaPanel) => Promise<void>): Promise<void>;
}

/**
 * Δ of a pair that has been measured. What does not stay is made again from the models in every pass.
 * @throws AmalgamError `LimitExceeded` for one that is too large to stay on the device and has over-long rows
 */
export function deltaMatrix(open: OpenPair): DeltaMatrix {
  const { rows, cols, work, staying, rest, pair } = open;
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
          row: begin / cols,
          rows: (end - begin) / cols,
        });
      });
    },
  };
}

/** A tensor seen as a matrix: its last dimension are the columns; a vector is one row. */
interface MatrixShape {
  rows: number;
  cols: number;
}

export function matrixShape(shape: readonly number[]): MatrixShape {
  const cols = shape.at(-1) ?? 1;
  return { rows: shape.slice(0, -1).reduce((n, extent) => n * extent, 1), cols };
}

/**
 * Cuts a matrix into tiles of at most `tileElements`: whole rows, a multiple of 64 of them where that many fit, so that
 * products do not depend on the tile size; a row that does not fit is cut at multiples of 4096 columns.
 */
export function cutRows({ rows, cols }: MatrixShape, tileElements: number): Tile[] {
  const tiles: Tile[] = [];
  const elements = rows * cols;
  if (cols > tileElements) {
    const piece = Math.floor(tileElements / BLOCK) * BLOCK;
    for (let row = 0; row < rows; row++) {
      const end = (row + 1) * cols;
      for (let begin = row * cols; begin < end; begin += piece) {
        tiles.push({ begin, end: Math.min(begin + piece, end) });
      }
    }
    return tiles;
  }
  const fit = Math.floor(tileElements / cols);
  const size = (fit < PANEL_CHUNK ? fit : Math.floor(fit / PANEL_CHUNK) * PANEL_CHUNK) * cols;
  for (let begin = 0; begin < elements; begin += size) {
    tiles.push({ begin, end: Math.min(begin + size, elements) });
  }
  return tiles;
}
