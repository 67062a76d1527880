/**
 * Task vectors as they are stored: on the processor the frequent presets of the delta pipeline go from stored words to packed
 * ones without slots in between, in as many passes as before (assembly/kernels/lib/stored-changes.ts).
 */
import type { Backend, BackendBuffer } from '../../backend/backend';
import { exact } from '../../backend/exact';
import { blockCount } from '../../backend/kernel';
import { mergeChanges, packKept, SELECTION } from '../../backend/kernels/combine';
import { decode, MOST_SLOTS } from '../../backend/kernels/encoding';
import { measureChanges } from '../../backend/kernels/products';
import { drawMask, drawRanks, MOST_UNRANKED, selectMask } from '../../backend/kernels/select';
import type { DeltaPreset } from '../method';
import type { TensorPlan } from '../plan/plan';
import { type Selector, thresholdOf, trims } from './delta-selectors';
import { thresholdWords } from './radix-select';
import type { TensorTask } from './tensor-task';
import { packing } from './tile-encoding';
import { rowLength, type Tile } from './tiles';

/** Whether a tensor's changes can be taken as they are stored: few, all or almost all as they lie in files. */
export function changesStored({ base, models }: TensorPlan, { kind }: Backend): boolean {
  return (
    kind === 'cpu' &&
    models.length < MOST_SLOTS &&
    base !== undefined &&
    !base.lowRank &&
    !base.addend &&
    models.every(
      ({ view }) => (!view.lowRank && !view.addend) || (view.onBase && view.lowRank?.magnitude === undefined),
    )
  );
}

/** Whether a preset can merge changes as they are stored, of a tensor of this shape. */
export function mergesStored({ select, rescale, weights }: DeltaPreset, shape: readonly number[]): boolean {
  const ranks = select === 'rank' && rescale !== '1/probability' && rowLength(shape) <= MOST_UNRANKED;
  const draws = select === 'random' || ranks;
  const cuts = (select === 'top-k' || select === 'band') && rescale !== 'l1';
  return (select === 'all' || draws || cuts) && weights !== 'energy';
}

/** Enqueues the decoding of a tile that is merged as it is stored, for kernels that want slots. */
export function fillSlots({ work, plan, raw }: TensorTask, elements: number): void {
  const { engine, stride, inputs, values } = work;
  // what is not finite is counted by those that take it as it is stored
  const status = engine.allocate(work.status.byteLength, 'status');
  engine.run(decode, {
    params: { elements, stride, slots: plan.models.length + 1 },
    buffers: { raw, inputs, values, status },
  });
  engine.free(status);
}

/** Windows that are counted on the way. */
export interface WindowList {
  windows: BackendBuffer;
  length: number;
  counts: BackendBuffer;
  list: BackendBuffer;
}

/** Enqueues measuring the tile: all of it, or what masks leave; `bins`: with the histograms of all keys. */
export function runMeasure(
  task: TensorTask,
  { begin }: Tile,
  elements: number,
  into: { sums: BackendBuffer; norms?: BackendBuffer | undefined },
  {
    masks,
    windows,
    bins,
  }: { masks?: ChangeMasks | undefined; windows?: WindowList | undefined; bins?: BackendBuffer },
): void {
  const { work, plan, raw } = task;
  const { engine, stride, inputs, values, status } = work;
  const place = masks?.place(begin);
  engine.run(measureChanges, {
    params: {
      elements,
      stride,
      models: plan.models.length,
      first_block: blockCount(begin),
      masked: masks ? 1 : 0,
      mask: place?.mask ?? 0,
      mask_pitch: place?.pitch ?? 0,
      norms: into.norms ? 1 : 0,
      windows: windows?.length ?? 0,
      binned: bins ? 1 : 0,
    },
    buffers: {
      raw,
      inputs,
      values,
      masks: masks?.buffer ?? inputs,
      windows: windows?.windows ?? inputs,
      counts: windows?.counts ?? inputs,
      list: windows?.list ?? inputs,
      bins: bins ?? inputs,
      sums: into.sums,
      norms: into.norms ?? inputs,
      status,
    },
  });
}

/** How signs were elected. */
export interface Election {
  election: number;
  zeroNegative: boolean;
}

/** A selection that is decided: thresholds, or masks of the tile. */
export interface Decided {
  cuts?: BackendBuffer | undefined;
  masks?: ChangeMasks | undefined;
}

/** Puts the thresholds of all contributors on the device, where that is how they are selected. */
export function writeCuts({ work }: TensorTask, selectors: readonly Selector[]): BackendBuffer | undefined {
  if (!selectors.some((s) => s.kind === 'threshold')) return undefined;
  const words = selectors.flatMap((s) => {
    const [outer, inner] = s.kind === 'threshold' ? [thresholdOf(s.outer), thresholdOf(s.inner)] : [];
    return Object.values(outer ? thresholdWords(outer, inner) : KEEP_ALL);
  });
  const cuts = work.engine.allocate(words.length * 4, 'thresholds');
  work.engine.write(cuts, 0, new Uint8Array(Uint32Array.from(words).buffer));
  return cuts;
}

const KEEP_ALL = thresholdWords({ key: 0, cutBlock: 0xffffffff, cutQuota: 0 });

/**
 * Enqueues merging the tile into `work.packed`, with `work.stats`, `work.counts`, `work.kept` and the products of what stays
 * in `sums`. What is not finite is counted anew.
 */
export function runMergeChanges(
  task: TensorTask,
  { begin }: Tile,
  elements: number,
  { election, zeroNegative, lambda }: Election & { lambda: number },
  { cuts, masks }: Decided,
  sums: BackendBuffer,
): void {
  const { work, plan, raw } = task;
  const { engine, stride, inputs, values, status, coefficients, packed, stats, counts, kept } = work;
  const place = masks?.place(begin);
  engine.clear(status);
  engine.clear(counts);
  engine.run(mergeChanges, {
    params: {
      elements,
      stride,
      models: plan.models.length,
      first_block: blockCount(begin),
      selection: masks ? SELECTION.masks : cuts ? SELECTION.cuts : SELECTION.all,
      mask: place?.mask ?? 0,
      mask_pitch: place?.pitch ?? 0,
      election,
      zero_negative: zeroNegative ? 1 : 0,
      lambda: exact(lambda),
      ...packing(task),
    },
    buffers: {
      ...{ raw, inputs, values, cuts: cuts ?? inputs, masks: masks?.buffer ?? inputs },
      ...{ coefficients, packed, sums, stats, counts, kept, status },
    },
  });
}

/**
 * Masks of what draws leave of the changes of all contributors, one bit per element: of the whole tensor, where there is room
 * for them between its passes, else of one tile of changes that are merged as they are stored.
 */
export class ChangeMasks {
  readonly buffer: BackendBuffer;
  readonly #task: TensorTask;
  readonly #selectors: readonly Selector[];
  readonly #whole: boolean;
  /** Scratch for ranks. */
  readonly #row: BackendBuffer | undefined;
  /** Words from one contributor to the next. */
  readonly #pitch: number;
  /** Contents of `work.kept` after each tile. */
  readonly #counts = new Map<Tile, Uint8Array<ArrayBuffer>>();

  private constructor(task: TensorTask, selectors: readonly Selector[], whole: boolean) {
    this.#task = task;
    this.#selectors = selectors;
    this.#whole = whole;
    this.#pitch = Math.ceil((whole ? task.plan.elements : task.work.stride) / 32);
    const { engine } = task.work;
    this.buffer = engine.allocate(selectors.length * this.#pitch * 4, 'masks of changes');
    const ranks = task.form === 'stored changes' && selectors.some(({ kind }) => kind === 'rank');
    this.#row = ranks ? engine.allocate(8 * rowLength(task.plan.shape), 'row of changes') : undefined;
  }

  /**
   * Masks, where something is drawn. Of slots there are none where a tensor of one tile stays in them anyway, where the device
   * has no room, and where more trims than draws, which cost more than a mask, or a rank also scales.
   * @throws AmalgamError `GpuOutOfMemory`
   */
  static open(task: TensorTask, selectors: readonly Selector[]): ChangeMasks | undefined {
    const { work, plan, tiles } = task;
    const bytes = selectors.length * Math.ceil(plan.elements / 32) * 4;
    const whole = bytes <= Math.min(task.spareBytes, work.engine.maxBufferBytes);
    const again = (s: Selector) => !trims(s) || s.kind === 'random' || (s.kind === 'rank' && !s.scaled);
    const isOpen = task.form === 'stored changes' || (whole && tiles.length > 1 && selectors.every(again));
    const draws = selectors.some(({ kind }) => kind === 'random' || kind === 'rank');
    return isOpen && draws ? new ChangeMasks(task, selectors, whole) : undefined;
  }

  /** Word of a tile's first mask, and how many words the next is from it. */
  place(begin: number): { mask: number; pitch: number } {
    return { mask: this.#whole ? begin / 32 : 0, pitch: this.#pitch };
  }

  /** Enqueues making the masks of a tile of stored changes; the numbers kept are added to `work.kept`. */
  make(tile: Tile, elements: number): void {
    const { engine, stride, inputs, values, kept } = this.#task.work;
    const { mask, pitch } = this.place(tile.begin);
    for (const [i, s] of this.#selectors.entries()) {
      const common = { elements, first: tile.begin, mask: mask + i * pitch, out: i };
      if (s.kind === 'rank') {
        const [key0, key1] = s.key;
        const cols = rowLength(this.#task.plan.shape);
        engine.run(drawRanks, {
          params: { ...common, stride, slot: i + 1, cols, key0, key1 },
          buffers: {
            ...{
              raw: this.#task.raw,
              inputs,
              values,
              table: s.table,
              row: this.#row!,
              masks: this.buffer,
              kept,
            },
          },
        });
      } else {
        const [below, [key0, key1]] = s.kind === 'random' ? [s.below, s.key] : [0, [0, 0]];
        const all = s.kind === 'all' ? 1 : 0;
        engine.run(drawMask, {
          params: { ...common, below, key0, key1, all },
          buffers: { masks: this.buffer, kept },
        });
      }
    }
  }

  /** Enqueues packing what was left in the slots of a tile. */
  pack(tile: Tile, elements: number): void {
    this.#onSlots(tile, elements, packKept);
  }

  /** Stores the numbers kept of a tile whose masks were made. */
  remember(tile: Tile, counts: Uint8Array<ArrayBuffer>): void {
    if (this.#whole) this.#counts.set(tile, counts);
  }

  /** Brings the numbers kept of a tile back and trims its slots, where it has some; false where its masks are to be made. */
  apply(tile: Tile, elements: number): boolean {
    const counts = this.#counts.get(tile);
    if (!counts) return false;
    const { work, form } = this.#task;
    work.engine.write(work.kept, 0, counts);
    if (form !== 'stored changes') this.#onSlots(tile, elements, selectMask);
    return true;
  }

  close(): void {
    const { engine } = this.#task.work;
    engine.free(this.buffer);
    if (this.#row) engine.free(this.#row);
  }

  #onSlots({ begin }: Tile, elements: number, kernel: typeof packKept | typeof selectMask): void {
    const { engine, stride, values } = this.#task.work;
    const { mask, pitch } = this.place(begin);
    for (const [i, selector] of this.#selectors.entries()) {
      if (!trims(selector)) continue;
      engine.run(kernel, {
        params: { elements, slot: (i + 1) * stride, first: mask + i * pitch },
        buffers: { values, mask: this.buffer },
      });
    }
  }
}
