/** Keys, values and states of earlier tokens, kept on the device between passes. */

import type { BackendBuffer } from '../backend/backend';
import { placeHeads } from '../backend/kernels/attention';
import { gatherRows } from '../backend/kernels/rows';
import { AmalgamError } from '../errors';
import type { Architecture } from '../models/architecture';
import type { SlotCopy } from './chunk';
import type { Model } from './model';
import { blockStates } from './parts/kinds';
import type { StateShape } from './parts/part';
import type { Queue } from './queue';

/** State of earlier tokens: keys and values of every position, and the states of parts that run along a sequence. */
export interface KvCache {
  readonly slots: number;
  /** Positions of a slot. */
  readonly capacity: number;
  /** Per block, by name. */
  readonly layers: readonly ReadonlyMap<string, CachedState>[];
  /**
   * Copies the state of the first `positions` of a slot into other slots: a common beginning is run once.
   * @throws what `Queue.breathe` throws
   */
  copy(from: number, to: readonly number[], positions: number): Promise<void>;
  close(): void;
}

/** [slots · rows, width] f32. */
interface CachedState {
  buffer: BackendBuffer;
  width: number;
  /** Rows of a slot: one a position, or one. */
  rows: number;
}

/** f32 elements of the widest row that is kept of a position. */
export function widestState({ blocks }: Architecture): number {
  const states = blocks.flatMap(blockStates);
  return Math.max(0, ...states.map(({ per, width }) => (per === 'position' ? width : 0)));
}

/** Bytes that a sequence of so many positions takes: of all blocks, and of the largest buffer. */
export function sequenceBytes({ blocks }: Architecture, positions: number): { all: number; largest: number } {
  const bytes = blocks
    .flatMap(blockStates)
    .map(({ per, width }) => 4 * width * (per === 'position' ? positions : 1));
  return { all: bytes.reduce((a, b) => a + b, 0), largest: Math.max(0, ...bytes) };
}

/**
 * Room for `slots` sequences of up to `capacity` positions.
 * @throws AmalgamError `ContextTooLong` when a block's keys exceed the largest buffer
 */
export function createKvCache(
  queue: Queue,
  architecture: Architecture,
  slots: number,
  capacity: number,
): KvCache {
  const { largest } = sequenceBytes(architecture, capacity);
  if (slots * largest > queue.engine.maxBufferBytes) {
    throw new AmalgamError(
      'ContextTooLong',
      `The keys of ${slots} × ${capacity} tokens take ${slots * largest} bytes a layer; ${queue.engine.adapter} allows ${queue.engine.maxBufferBytes}.`,
      'Generate fewer sequences at once, or shorter ones.',
    );
  }
  const layers: Map<string, CachedState>[] = [];
  const close = () => {
    for (const { buffer } of layers.splice(0).flatMap((layer) => [...layer.values()])) queue.free(buffer);
  };
  try {
    for (const block of architecture.blocks) {
      const layer = new Map<string, CachedState>();
      layers.push(layer);
      for (const { name, per, width } of blockStates(block)) {
        const rows = per === 'position' ? capacity : 1;
        const buffer = queue.allocate(slots * rows * width * 4, `${name} of layer ${block.index}`);
        layer.set(name, { buffer, width, rows });
      }
    }
  } catch (error) {
    close();
    throw error;
  }
  return {
    slots,
    capacity,
    layers,
    async copy(from, to, positions) {
      for (const state of layers.flatMap((layer) => [...layer.values()])) {
        await copySlot(queue, state, from, to, Math.min(positions, state.rows));
      }
    },
    close,
  };
}

/** Rows of a buffer copied to other places in it; a kernel cannot read and write one buffer, so they go by way of another. */
interface RowCopies {
  buffer: BackendBuffer;
  width: number;
  rows: number;
  /** u32 per row: which. */
  picks: BackendBuffer;
  /** Two u32 per row: where to, 0. */
  places: BackendBuffer;
  /** [rows, width]. */
  between: BackendBuffer;
  nothing: BackendBuffer;
}

/** Enqueues the copies of some rows. */
export function copyRows(
  queue: Queue,
  { buffer, width, rows, picks, places, between, nothing }: RowCopies,
): void {
  queue.run(gatherRows, { params: { rows, width }, buffers: { x: buffer, picks, y: between } });
  queue.run(placeHeads, {
    params: {
      rows,
      heads: 1,
      head_dim: width,
      half: 0,
      x_begin: 0,
      x_stride: width,
      head_stride: width,
      group: 1,
      group_stride: 0,
      adjacent: 0,
      y_begin: 0,
      y_dim: width,
      y_stride: width,
      keep_rows: 0,
    },
    // without rotation no angle is read
    buffers: { x: between, places, angles: nothing, y: buffer },
  });
}

/** The first `count` rows of a slot, copied to other slots one after the other. */
async function copySlot(
  queue: Queue,
  { buffer, width, rows: slotRows }: CachedState,
  from: number,
  to: readonly number[],
  count: number,
): Promise<void> {
  const upload = (words: number[], label: string) => {
    const made = queue.allocate(words.length * 4, label);
    queue.write(made, 0, Uint32Array.from(words));
    return made;
  };
  const each = Array.from({ length: count }, (_, p) => p);
  const between = queue.allocate(count * width * 4, 'rows to copy');
  const picks = upload(
    each.map((p) => from * slotRows + p),
    'rows of the slot',
  );
  const made = [between, picks];
  try {
    for (const slot of to) {
      const places = upload(
        each.flatMap((p) => [slot * slotRows + p, 0]),
        'rows of the copy',
      );
      made.push(places);
      copyRows(queue, { buffer, width, rows: count, picks, places, between, nothing: picks });
      await queue.breathe();
    }
  } finally {
    for (const one of made) queue.free(one);
  }
}

// Sequences that continue others: the state of those is copied to the slots of these.

/** Rows of the states per position and per sequence: their source, and (row, 0) of their destination. */
export function copiedRows(copies: readonly SlotCopy[]) {
  const rows = (each: (copy: SlotCopy) => [from: number, to: number][]) => {
    const pairs = copies.flatMap(each);
    return {
      from: Uint32Array.from(pairs, ([from]) => from),
      to: Uint32Array.from(pairs.flatMap(([, to]) => [to, 0])),
    };
  };
  return {
    position: rows(({ from, to, positions, slotRows }) =>
      Array.from({ length: positions }, (_, p) => [from * slotRows + p, to * slotRows + p]),
    ),
    sequence: rows(({ from, to }) => [[from, to]]),
  };
}

/** Copies the states of continued sequences to the slots of those that continue them. */
export function copyState(
  { operations: { queue, nothing }, workspace }: Model,
  k: number,
  copies: readonly SlotCopy[],
  { per, width }: StateShape,
  buffer: BackendBuffer,
): void {
  const rows = per === 'position' ? copies.reduce((sum, { positions }) => sum + positions, 0) : copies.length;
  copyRows(queue, {
    buffer,
    width,
    rows,
    picks: workspace.take(`${per} copied ${k}`, rows * 4),
    places: workspace.take(`${per} copies ${k}`, rows * 8),
    between: workspace.take('rows to copy', rows * width * 4),
    nothing,
  });
}
