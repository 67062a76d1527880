/** Keys and values of earlier tokens, kept on the device between sweeps. */
import type { EngineBuffer } from '../compute/engine';
import { AmalgamError } from '../errors';
import type { Architecture } from '../models/architecture';
import type { Queue } from './queue';

export interface KvCache {
  readonly slots: number;
  /** Positions of a slot. */
  readonly capacity: number;
  readonly byteLength: number;
  /** Per block: [slots · capacity, keyValueHeads · headDim] f32 each. */
  readonly layers: readonly { keys: EngineBuffer; values: EngineBuffer }[];
  close(): void;
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
  const sizes = architecture.blocks.map(
    ({ attention }) => slots * capacity * attention.keyValueHeads * attention.headDim * 4,
  );
  const largest = Math.max(...sizes);
  if (largest > queue.engine.maxBufferBytes) {
    throw new AmalgamError(
      'ContextTooLong',
      `The keys of ${slots} × ${capacity} tokens take ${largest} bytes a layer; ${queue.engine.adapter} allows ${queue.engine.maxBufferBytes}.`,
      'Generate fewer sequences at once, or shorter ones.',
    );
  }
  const layers: { keys: EngineBuffer; values: EngineBuffer }[] = [];
  const close = () => {
    for (const { keys, values } of layers.splice(0)) {
      queue.free(keys);
      queue.free(values);
    }
  };
  try {
    for (const [i, size] of sizes.entries()) {
      layers.push({
        keys: queue.allocate(size, `keys of layer ${i}`),
        values: queue.allocate(size, `values of layer ${i}`),
      });
    }
  } catch (error) {
    close();
    throw error;
  }
  return { slots, capacity, byteLength: 2 * sizes.reduce((a, b) => a + b, 0), layers, close };
}
