/** Keys and values of earlier tokens, kept on the device between sweeps. */
import type { BackendBuffer } from '../backend/backend';
import { gatherRows } from '../backend/kernels/gather-rows';
import { placeHeads } from '../backend/kernels/place-heads';
import { AmalgamError } from '../errors';
import type { Architecture } from '../models/architecture';
import type { Queue } from './queue';

export interface KvCache {
  readonly slots: number;
  /** Positions of a slot. */
  readonly capacity: number;
  readonly byteLength: number;
  /** Per block: [slots · capacity, width] f32 each, width = keyValueHeads · headDim. */
  readonly layers: readonly CachedLayer[];
  /**
   * Copies the first `positions` of a slot into other slots: what begins alike is run once.
   * @throws what `Queue.breathe` throws
   */
  copy(from: number, to: readonly number[], positions: number): Promise<void>;
  close(): void;
}

export interface CachedLayer {
  keys: BackendBuffer;
  values: BackendBuffer;
  width: number;
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
  const widths = architecture.blocks.map(({ attention }) => attention.keyValueHeads * attention.headDim);
  const bytes = (width: number) => slots * capacity * width * 4;
  const largest = bytes(Math.max(...widths));
  if (largest > queue.engine.maxBufferBytes) {
    throw new AmalgamError(
      'ContextTooLong',
      `The keys of ${slots} × ${capacity} tokens take ${largest} bytes a layer; ${queue.engine.adapter} allows ${queue.engine.maxBufferBytes}.`,
      'Generate fewer sequences at once, or shorter ones.',
    );
  }
  const layers: CachedLayer[] = [];
  const close = () => {
    for (const { keys, values } of layers.splice(0)) {
      queue.free(keys);
      queue.free(values);
    }
  };
  try {
    for (const [i, width] of widths.entries()) {
      layers.push({
        keys: queue.allocate(bytes(width), `keys of layer ${i}`),
        values: queue.allocate(bytes(width), `values of layer ${i}`),
        width,
      });
    }
  } catch (error) {
    close();
    throw error;
  }
  return {
    slots,
    capacity,
    byteLength: 2 * widths.reduce((sum, width) => sum + bytes(width), 0),
    layers,
    copy: (from, to, positions) => copySlot(queue, layers, capacity, from, to, positions),
    close,
  };
}

/** A kernel cannot read and write one buffer, so rows go by way of another. */
async function copySlot(
  queue: Queue,
  layers: readonly CachedLayer[],
  capacity: number,
  from: number,
  to: readonly number[],
  positions: number,
): Promise<void> {
  const upload = (words: number[], label: string) => {
    const buffer = queue.allocate(words.length * 4, label);
    queue.write(buffer, 0, Uint32Array.from(words));
    return buffer;
  };
  const each = Array.from({ length: positions }, (_, p) => p);
  const rows = queue.allocate(positions * Math.max(...layers.map((l) => l.width)) * 4, 'rows to copy');
  const picks = upload(
    each.map((p) => from * capacity + p),
    'rows of the slot',
  );
  const places = to.map((slot) =>
    upload(
      each.flatMap((p) => [slot * capacity + p, 0]),
      'rows of the copy',
    ),
  );
  const work = { groups: positions, elements: positions };
  try {
    for (const { keys, values, width } of layers) {
      for (const buffer of [keys, values]) {
        queue.run(gatherRows, {
          params: { rows: positions, width },
          buffers: { x: buffer, picks, y: rows },
          ...work,
        });
        for (const place of places) {
          queue.run(placeHeads, {
            params: {
              rows: positions,
              heads: 1,
              head_dim: width,
              half: 0,
              x_begin: 0,
              x_stride: width,
              head_stride: width,
              keep_rows: 0,
            },
            // without rotation no angle is read
            buffers: { x: rows, places: place, angles: picks, y: buffer },
            ...work,
          });
          await queue.breathe();
        }
      }
    }
  } finally {
    for (const buffer of [rows, picks, ...places]) queue.free(buffer);
  }
}
