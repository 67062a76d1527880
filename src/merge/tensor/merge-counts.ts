/** Merge counts, tile by tile (shaders/statistics/merge-counts.wgsl). */
import type { BufferRange } from '../../backend/backend';
import { ELECTION } from '../../backend/kernels/combine';
import { mergeCounts, mergeCountWords } from '../../backend/kernels/statistics';
import type { MergeCounts } from '../../reports/job';
import type { TensorTask } from './tensor-task';
import { packing } from './tile-encoding';

/** How signs were elected. */
export interface Election {
  election: number;
  zeroNegative: boolean;
}

/** The counts of a tensor, added up over its tiles; `models` 0 counts only elements that stay at the base. */
export class CountSums {
  readonly #task: TensorTask;
  readonly #models: number;
  readonly #totals: Float64Array;

  constructor(task: TensorTask, models: number) {
    this.#task = task;
    this.#models = models;
    this.#totals = new Float64Array(mergeCountWords(models));
  }

  /** Enqueues the counting of the tile that lies in `work.packed`; returns what to read back. */
  run(elements: number, { election, zeroNegative }: Election): BufferRange {
    const { work } = this.#task;
    const { values, coefficients, packed, counts, engine } = work;
    engine.clear(counts);
    engine.run(mergeCounts, {
      params: {
        elements,
        stride: work.stride,
        models: this.#models,
        election,
        zero_negative: zeroNegative ? 1 : 0,
        dtype: packing(this.#task).dtype,
      },
      buffers: { values, coefficients, packed, counts },
    });
    return { buffer: counts, byteLength: this.#totals.length * 4 };
  }

  /** Adds the counts read back. */
  add(bytes: Uint8Array<ArrayBuffer>): void {
    for (const [i, n] of new Uint32Array(bytes.buffer).entries()) this.#totals[i]! += n;
  }

  /** The counts of the whole tensor. */
  counts(election: number): MergeCounts {
    const n = this.#models;
    const pair = (i: number, j: number) => 1 + n + i * n - (i * (i + 1)) / 2 + j;
    return {
      atBase: this.#task.plan.base ? this.#totals[0]! : null,
      shared: Array.from({ length: n }, (_, i) =>
        Array.from({ length: n }, (__, j) => this.#totals[pair(Math.min(i, j), Math.max(i, j))]!),
      ),
      lost: election === ELECTION.none ? [] : [...this.#totals.slice(1, 1 + n)],
    };
  }
}
