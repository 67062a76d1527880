/** Masks of the elements that a selection left in every tile, so that a later pass need not repeat it. */
import type { BackendBuffer } from '../../backend/backend';
import { packKept } from '../../backend/kernels/combine';
import { selectMask } from '../../backend/kernels/select';
import type { TensorTask } from './tensor-task';
import type { Tile } from './tiles';

/** Masks of some slots of a tensor, one bit per element, on the device until they are closed. */
export class KeptMasks {
  readonly #task: TensorTask;
  /** Slots that are trimmed. */
  readonly #slots: readonly number[];
  readonly #mask: BackendBuffer;
  /** Contents of `work.kept` after each tile. */
  readonly #counts = new Map<Tile, Uint8Array<ArrayBuffer>>();

  private constructor(task: TensorTask, slots: readonly number[], byteLength: number) {
    this.#task = task;
    this.#slots = slots;
    this.#mask = task.work.engine.allocate(byteLength, 'kept masks');
  }

  /**
   * Masks of these slots, or undefined where a tensor of one tile stays in its slots anyway, or where the device has no room.
   * @throws AmalgamError `GpuOutOfMemory`
   */
  static open(task: TensorTask, slots: readonly number[]): KeptMasks | undefined {
    const bytes = slots.length * Math.ceil(task.plan.elements / 32) * 4;
    const fits = bytes <= task.spareBytes && bytes <= task.work.engine.maxBufferBytes;
    return bytes > 0 && task.tiles.length > 1 && fits ? new KeptMasks(task, slots, bytes) : undefined;
  }

  /** Enqueues packing the contents of the tile's slots. */
  pack(tile: Tile, elements: number): void {
    const { engine, values } = this.#task.work;
    for (const place of this.#places(tile, elements)) {
      engine.run(packKept, { ...place, buffers: { values, mask: this.#mask } });
    }
  }

  /** Stores the counts kept of a tile that was packed. */
  remember(tile: Tile, counts: Uint8Array<ArrayBuffer>): void {
    this.#counts.set(tile, counts);
  }

  /** Enqueues trimming the tile as it was when it was packed; false where it was not. */
  apply(tile: Tile, elements: number): boolean {
    const counts = this.#counts.get(tile);
    if (!counts) return false;
    const { engine, values, kept } = this.#task.work;
    engine.write(kept, 0, counts);
    for (const place of this.#places(tile, elements)) {
      engine.run(selectMask, { ...place, buffers: { mask: this.#mask, values } });
    }
    return true;
  }

  close(): void {
    this.#task.work.engine.free(this.#mask);
  }

  #places({ begin }: Tile, elements: number) {
    const { work, plan } = this.#task;
    return this.#slots.map((slot, i) => ({
      params: {
        elements,
        slot: slot * work.stride,
        first: i * Math.ceil(plan.elements / 32) + begin / 32,
      },
    }));
  }
}
