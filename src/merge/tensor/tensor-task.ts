/**
 * One output tensor at work: fetches the stored bytes of a tile, brings them to the device and turns them into what a
 * method computes with: slot 0 = W₀, slot i = τᵢ (delta methods) or Wᵢ (weights methods), f32.
 */

import { type Backend, type BackendBuffer, dispatchWork } from '../../backend/backend';
import { exact, exactFloats, flushFloats } from '../../backend/exact';
import { BLOCK } from '../../backend/kernel';
import { decode, inputWords, type SLOT_FORM } from '../../backend/kernels/encoding';
import { innerProducts } from '../../backend/kernels/products';
import { rowScale } from '../../backend/kernels/rows';
import { lowRank, subtract } from '../../backend/kernels/sums';
import { weightBytes } from '../../formats/dtype';
import { loadFactorValues, type ReadTensor, readF32, weightDtype } from '../../inputs/stored-tensor';
import type { TensorRef, TensorView } from '../../inputs/tensor-view';
import { giveBack, spareArray } from '../../sources/spare-arrays';
import type { TensorPlan } from '../plan/plan';
import { DEFAULT_KEPT_BYTES } from './device-budget';
import { cutTiles, type Tile } from './tiles';
import type { Workspace } from './workspace';

/**
 * Contents of slots 1…: task vectors, whole weights, or nothing, where kernels take the tile's stored words as either. With
 * `stored changes` only what has no stored words of its own lies in its slot: the product of an adapter's factors.
 */
export type SlotForm = 'delta' | 'weights' | 'stored' | 'stored changes';

export interface TensorTask {
  readonly plan: TensorPlan;
  readonly read: ReadTensor;
  readonly form: SlotForm;
  readonly work: Workspace;
  readonly tiles: readonly Tile[];
  /** Stored words of the tile that is visited; `work.inputs` says where whose begin. */
  readonly raw: BackendBuffer;
  /** Bytes that may stay on the device between passes, beside the stored ones. */
  readonly spareBytes: number;
  /** Begins reading the first tile; harmless to call early or twice. */
  prefetch(): void;
  /**
   * Visits the tiles in order with the slots filled. A tensor of one tile is loaded once: later passes find the slots
   * as the previous pass left them.
   * @param readsBack whether every visit reads from the engine. Nothing else holds the upload of the next tile up, so
   *   the pass then waits itself: else all of a large tensor's stored bytes would lie in the engine's queue
   */
  pass(visit: (tile: Tile, elements: number) => Promise<void>, readsBack?: boolean): Promise<void>;
  close(): void;
}

/**
 * Opens a tensor. Slot 0 holds the base where there is one, else zeros.
 * @param groupElements tiles are whole multiples of it (rows, for methods that work row by row)
 * @param cut tiles of at most `work.stride` elements cut in another way; whole rows where a model has DoRA
 * @param again more than one pass is to come: stored bytes stay on the device where they are not too many
 */
export function openTask(
  plan: TensorPlan,
  form: SlotForm,
  work: Workspace,
  read: ReadTensor,
  groupElements = 1,
  cut?: readonly Tile[],
  again = false,
): TensorTask {
  const views = viewsOf(plan);
  const tiles = cut ?? cutTiles(plan.elements, work.stride, doraUnit(plan), groupElements);
  const wanted = [...new Set(views.flatMap((view) => (view ? [view.origin] : [])))];
  const hasFactors = views.some((view) => view?.lowRank || view?.addend);
  let factors: Promise<(Factors | undefined)[]> | undefined;
  let first: Promise<Map<TensorRef, Uint8Array<ArrayBuffer>>> | undefined;
  let resident = false;
  let raw = work.raw;
  const stored = wanted.reduce((sum, ref) => sum + ref.end - ref.begin, 0);
  const most = work.engine.keptBytes ?? DEFAULT_KEPT_BYTES;
  const keeps = again && tiles.length > 1 && stored <= most;
  const kept: StoredTile[] = [];
  /** Whether stored bytes come at once: then there is nothing to read ahead. */
  let atOnce =
    read.now !== undefined &&
    work.engine.memoryOf !== undefined &&
    wanted.every(({ derived, rows }) => !derived && !rows);

  const fetchTile = async (tile: Tile) => {
    const bytes = await Promise.all(wanted.map((ref) => read(ref, ...rangeOf(ref, tile))));
    return new Map(wanted.map((ref, i) => [ref, bytes[i]!]));
  };
  const prefetch = () => {
    factors ??= hasFactors
      ? Promise.all(views.map((view) => view && loadFactors(view, work.engine, read)))
      : Promise.resolve([]);
    if (!atOnce && tiles[0]) first ??= fetchTile(tiles[0]);
    // the failure is reported when the pass awaits it, not as an unhandled rejection
    factors.catch(() => {});
    first?.catch(() => {});
  };
  const loadTile = async (tile: Tile, following: Tile | undefined) => {
    const onDevice = placeTile(work, wanted, tile, keeps);
    if (keeps) kept.push(onDevice);
    atOnce &&= await waiting(work, async () => fillNow(work, onDevice, tile, read));
    if (atOnce) return onDevice;
    const bytes = await waiting(work, () => first ?? fetchTile(tile));
    first = following && fetchTile(following);
    first?.catch(() => {});
    // the bytes were fetched for this tile alone
    for (const [ref, data] of bytes) {
      work.engine.write(onDevice.buffer, onDevice.regions.get(ref)! * 4, padToWord(data), true);
    }
    return onDevice;
  };

  return {
    plan,
    read,
    form,
    work,
    tiles,
    get raw() {
      return raw;
    },
    spareBytes: keeps ? most - stored : most,
    prefetch,
    async pass(visit, readsBack = true) {
      if (resident) return visit(tiles[0]!, plan.elements);
      if (kept.length === 0) prefetch();
      const loaded = await waiting(work, () => factors!);
      for (const [i, tile] of tiles.entries()) {
        const onDevice = kept[i] ?? (await loadTile(tile, tiles[i + 1]));
        raw = onDevice.buffer;
        await stage(plan, form, work, tile, onDevice, loaded);
        await visit(tile, tile.end - tile.begin);
        if (!readsBack && !keeps) await work.engine.read([]);
      }
      resident = tiles.length === 1;
    },
    close() {
      for (const { buffer } of kept) work.engine.free(buffer);
      // a failure has been reported by the pass
      void factors?.then(
        (all) => {
          for (const f of all) f?.close();
        },
        () => {},
      );
    },
  };
}

async function waiting<T>(work: Workspace, bytes: () => Promise<T>): Promise<T> {
  const begin = performance.now();
  const result = await bytes();
  work.onWait?.((performance.now() - begin) / 1000);
  return result;
}

/** The stored words of a tile on the device: where each tensor's begin. */
interface StoredTile {
  buffer: BackendBuffer;
  regions: ReadonlyMap<TensorRef, number>;
}

/** Bytes of a tile in a stored tensor. */
function rangeOf(ref: TensorRef, { begin, end }: Tile): [begin: number, end: number] {
  const width = weightBytes(weightDtype(ref));
  return [begin * width, end * width];
}

/** Room for the stored words of a tile: a buffer of their own where they are to stay. */
function placeTile(work: Workspace, refs: readonly TensorRef[], tile: Tile, stays: boolean): StoredTile {
  const regions = new Map<TensorRef, number>();
  let words = 0;
  for (const ref of refs) {
    const [begin, end] = rangeOf(ref, tile);
    regions.set(ref, words);
    words += stays ? Math.ceil((end - begin) / 4) : work.stride;
  }
  return { buffer: stays ? work.engine.allocate(words * 4, 'stored tile') : work.raw, regions };
}

/** Reads a tile to where it is wanted; false where that takes waiting. */
function fillNow(work: Workspace, { buffer, regions }: StoredTile, tile: Tile, read: ReadTensor): boolean {
  return [...regions].every(([ref, at]) => {
    const [begin, end] = rangeOf(ref, tile);
    const words = work.engine.memoryOf!(buffer, at * 4, Math.ceil((end - begin) / 4) * 4);
    words.fill(0, end - begin);
    return read.now!(ref, begin, end, words.subarray(0, end - begin));
  });
}

/** Decodes the stored words of a tile into the slots and applies low-rank updates, addends, DoRA and W − W₀. */
async function stage(
  plan: TensorPlan,
  form: SlotForm,
  work: Workspace,
  tile: Tile,
  { buffer: raw, regions }: StoredTile,
  factors: (Factors | undefined)[],
): Promise<void> {
  const { engine, stride, values, status } = work;
  const elements = tile.end - tile.begin;
  const views = viewsOf(plan);
  const forms = views.map((view, slot) => ({
    view,
    update: factors[slot],
    ...formOf(view, slot, form, factors),
  }));
  const inputs = forms.flatMap(({ view, decoded }) =>
    view && decoded !== 'leave'
      ? inputWords(decoded, regions.get(view.origin), weightDtype(view.origin))
      : inputWords('leave'),
  );
  // before anything is enqueued: a write sends off what is
  engine.write(work.inputs, 0, new Uint8Array(Uint32Array.from(inputs).buffer));
  engine.clear(status);
  if (form === 'stored') return;
  for (const [slot, { decoded, update }] of forms.entries()) {
    if (decoded === 'leave' && !update) engine.clear(values, slot * stride * 4, elements * 4);
  }
  if (form !== 'stored changes') {
    engine.run(decode, {
      params: { elements, stride, slots: views.length },
      buffers: { raw, inputs: work.inputs, values, status },
    });
  }
  for (const [slot, { update, decoded, subtracts }] of forms.entries()) {
    if (update) {
      runLowRank(work, tile, slot, update, decoded === 'leave' ? 0 : 1);
      if (update.magnitude) await scaleRows(work, tile, slot, update.cols, update.magnitude);
    }
    if (subtracts) {
      engine.run(subtract, { params: { elements, slot: slot * stride }, buffers: { values } });
    }
  }
}

/** Enqueues slot += scale · left · right, or = where nothing is to be added to, in parts that keep a dispatch short. */
export function runLowRank(work: Workspace, tile: Tile, slot: number, update: Factors, add: 0 | 1): void {
  const { engine, values, stride } = work;
  const { cols, rank, scale, left, right } = update;
  const most = Math.max(1, Math.floor(dispatchWork(engine) / rank / BLOCK)) * BLOCK;
  for (let begin = tile.begin; begin < tile.end; begin += most) {
    const elements = Math.min(most, tile.end - begin);
    engine.run(lowRank, {
      params: { elements, first: begin, cols, rank, slot: slot * stride + begin - tile.begin, add, scale },
      buffers: { left, right, values },
    });
  }
}

/** How a slot is decoded (`leave`: it begins as zeros), and whether the base is subtracted only after low-rank updates. */
function formOf(
  view: TensorView | undefined,
  slot: number,
  form: SlotForm,
  updates: readonly (Factors | undefined)[],
): { decoded: keyof typeof SLOT_FORM; subtracts: boolean } {
  if (!view) return { decoded: 'leave', subtracts: false };
  const isDelta = slot > 0 && (form === 'delta' || form === 'stored changes');
  const startsFromZero = isDelta && view.onBase && !view.lowRank?.magnitude;
  if (startsFromZero) return { decoded: 'leave', subtracts: false };
  if (isDelta && !updates[slot] && !updates[0]) return { decoded: 'change', subtracts: false };
  return { decoded: 'whole', subtracts: isDelta };
}

/** Views in the order of the slots: the base in slot 0, where there is one, then the contributors. */
function viewsOf({ base, models }: TensorPlan): (TensorView | undefined)[] {
  return [base, ...models.map(({ view }) => view)];
}

/** DoRA: V ← m / ‖V‖ · V per row; the norm is finished on the host so that both engines round alike. */
async function scaleRows(
  work: Workspace,
  tile: Tile,
  slot: number,
  cols: number,
  magnitude: Float32Array,
): Promise<void> {
  const { engine, values, stride } = work;
  const elements = tile.end - tile.begin;
  const rows = elements / cols;
  const squares: BackendBuffer = engine.allocate(rows * 4, 'row squares');
  engine.run(innerProducts, {
    params: { elements, slot: slot * stride, stride: 0, count: 1, run: cols },
    buffers: { values, sums: squares },
  });
  const [bytes] = await engine.read([{ buffer: squares, byteLength: rows * 4 }]);
  const sums = new Float32Array(bytes!.buffer);
  const firstRow = tile.begin / cols;
  const factor = exactFloats(sums.map((sum, row) => magnitude[firstRow + row]! / Math.sqrt(sum)));
  engine.write(squares, 0, new Uint8Array(factor.buffer));
  engine.run(rowScale, {
    params: { elements, cols, slot: slot * stride },
    buffers: { factor: squares, values },
  });
  engine.free(squares);
}

/** Rows must stay whole where a model has DoRA, which scales them by their norms. */
export function doraUnit(plan: TensorPlan): number {
  const isScaled = viewsOf(plan).some((view) => view?.lowRank?.magnitude !== undefined);
  // of a convolution an output is more than the last dimension
  return isScaled ? plan.elements / plan.shape[0]! : 1;
}

function padToWord(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (bytes.byteLength % 4 === 0) return bytes;
  const padded = new Uint8Array(Math.ceil(bytes.byteLength / 4) * 4);
  padded.set(bytes);
  return padded;
}

// The small factors of a contributor's update, on the device: L [rows, rank] and R [rank, cols] in f32.

export interface Factors {
  left: BackendBuffer;
  right: BackendBuffer;
  rank: number;
  cols: number;
  scale: number;
  /** DoRA magnitude, one per row. */
  magnitude?: Float32Array;
  close(): void;
}

/**
 * Loads the factors of a view, or undefined where it has none. A `lora_bias` addend b with scale s is the rank-1
 * update s · [1] · b. `transposed` layouts (Conv1D, embeddings) swap: L = Aᵀ, R = Bᵀ.
 */
async function loadFactors(
  view: TensorView,
  engine: Backend,
  read: ReadTensor,
): Promise<Factors | undefined> {
  if (view.addend) {
    const right = await readF32(view.addend.tensor, read);
    return uploadFactors(engine, new Float32Array([1]), right, 1, right.length, view.addend.scale);
  }
  if (!view.lowRank) return undefined;
  const { rank, scale, magnitude } = view.lowRank;
  const [{ left, right }, m] = await Promise.all([
    loadFactorValues(view.lowRank, read),
    magnitude ? readF32(magnitude, read) : undefined,
  ]);
  // of a convolution all but the outputs are columns
  const factors = uploadFactors(engine, left, right, rank, right.length / rank, scale);
  return m ? { ...factors, magnitude: m } : factors;
}

/** @param left it and `right` are done with afterwards */
export function uploadFactors(
  engine: Backend,
  left: Float32Array<ArrayBuffer>,
  right: Float32Array<ArrayBuffer>,
  rank: number,
  cols: number,
  scale: number,
): Factors {
  const upload = (values: Float32Array<ArrayBuffer>, label: string) => {
    const buffer = engine.allocate(values.byteLength, label);
    engine.write(buffer, 0, bytesOf(flushFloats(values)), true);
    return buffer;
  };
  const panels = columnPanels(right, rank, cols);
  giveBack(right.buffer);
  const [l, r] = [upload(left, 'left factor'), upload(panels, 'right factor')];
  return {
    left: l,
    right: r,
    rank,
    cols,
    scale: exact(scale),
    close() {
      engine.free(l);
      engine.free(r);
    },
  };
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array<ArrayBuffer>) =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** Columns that lie close together in R of the kernel: shaders/sums/low-rank.wgsl. */
const PANEL = 8;

/** R [rank, cols], row after row, in panels of columns; the last is filled up with zeros. */
function columnPanels(right: Float32Array, rank: number, cols: number): Float32Array<ArrayBuffer> {
  const length = Math.ceil(cols / PANEL) * PANEL * rank;
  const panels = new Float32Array(spareArray(length * 4).buffer, 0, length);
  if (cols % PANEL > 0) panels.fill(0, length - PANEL * rank);
  for (let k = 0; k < rank; k++) {
    for (let c = 0; c < cols; c++) {
      panels[(c - (c % PANEL)) * rank + k * PANEL + (c % PANEL)] = right[k * cols + c]!;
    }
  }
  return panels;
}
