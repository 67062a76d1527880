/** Measurements of the slots in their current state. */
import type { BackendBuffer, BufferRange } from '../../backend/backend';
import { blockCount } from '../../backend/kernel';
import { pairCount } from '../../backend/kernels/products';
import { absoluteSum } from '../../backend/kernels/statistics';
import { runProducts } from './delta-measure';
import { ProductSums } from './tensor-outcome';
import type { TensorTask } from './tensor-task';

/** Products of all slots and, where asked, ‖·‖₁ of every contributor, added up over tiles. */
export class SlotSums {
  readonly products: ProductSums;
  /** ‖·‖₁ of every contributor; zeros where it was not asked for. */
  readonly l1: number[];
  readonly #task: TensorTask;
  readonly #sums: BackendBuffer;
  readonly #norms: BackendBuffer | undefined;

  /** @throws AmalgamError `GpuOutOfMemory` */
  constructor(task: TensorTask, wantsL1: boolean) {
    const { engine, stride } = task.work;
    const models = task.plan.models.length;
    const words = blockCount(stride) * 4;
    this.#task = task;
    this.products = new ProductSums(models + 1);
    this.l1 = new Array<number>(models).fill(0);
    this.#sums = engine.allocate(words * pairCount(models + 1), 'products');
    this.#norms = wantsL1 ? engine.allocate(words * models, 'l1 sums') : undefined;
  }

  /** Enqueues the measuring of a tile as it stands; returns what to read back. */
  run(elements: number): BufferRange[] {
    const { work } = this.#task;
    const ranges = [{ buffer: this.#sums, byteLength: runProducts(this.#task, elements, this.#sums) }];
    if (!this.#norms) return ranges;
    const blocks = blockCount(elements);
    for (let i = 0; i < this.l1.length; i++) {
      work.engine.run(absoluteSum, {
        params: { elements, slot: (i + 1) * work.stride, out: i * blocks },
        buffers: { values: work.values, sums: this.#norms },
      });
    }
    return [...ranges, { buffer: this.#norms, byteLength: this.l1.length * blocks * 4 }];
  }

  /** Takes the sums of a tile, read back, from the front of `data`. */
  add(data: Uint8Array<ArrayBuffer>[]): void {
    this.products.add(new Float32Array(data.shift()!.buffer));
    if (!this.#norms) return;
    const sums = new Float32Array(data.shift()!.buffer);
    const blocks = sums.length / this.l1.length;
    for (let i = 0; i < this.l1.length; i++) {
      this.l1[i]! += sums.subarray(i * blocks, (i + 1) * blocks).reduce((a, b) => a + b, 0);
    }
  }

  close(): void {
    const { engine } = this.#task.work;
    engine.free(this.#sums);
    if (this.#norms) engine.free(this.#norms);
  }
}
