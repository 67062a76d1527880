/** Measurements of the delta pipeline, tile by tile, and the coefficients it combines with. */

import type { BackendBuffer, BufferRange } from '../../backend/backend';
import { exactFloats } from '../../backend/exact';
import { BLOCK, blockCount } from '../../backend/kernel';
import { coefficientWords, ELECTION, MOST_IN_TABLE } from '../../backend/kernels/combine';
import { innerProducts, pairCount } from '../../backend/kernels/products';
import { absoluteSum, mergeCounts, mergeCountWords } from '../../backend/kernels/statistics';
import type { MergeCounts } from '../../reports/job';
import type { DeltaPreset } from '../method';
import { densityOf, type Selector, trims } from './delta-selectors';
import { type ChangeMasks, type Election, runMeasure, type WindowList } from './stored-changes';
import { type Emit, ProductSums } from './tensor-outcome';
import type { TensorTask } from './tensor-task';
import { packing, readTile, requireFinite } from './tile-encoding';
import type { Tile } from './tiles';

/** Enqueues the products of all slots of the tile, block by block into `sums`; returns the bytes to read back. */
export function runProducts(task: TensorTask, elements: number, sums = task.work.sums): number {
  const { work, plan } = task;
  const count = plan.models.length + 1;
  work.engine.run(innerProducts, {
    params: { elements, slot: 0, stride: work.stride, count, run: BLOCK },
    buffers: { values: work.values, sums },
  });
  return productBytes(task, elements);
}

function productBytes({ plan }: TensorTask, elements: number): number {
  return blockCount(elements) * pairCount(plan.models.length + 1) * 4;
}

/** Reads the products of the tile that lie in `work.sums`, block by block, and what was counted of values that are not finite. */
export async function readProducts(
  task: TensorTask,
  elements: number,
): Promise<{ products: Float32Array; nonFinite: Uint32Array }> {
  const { engine, sums, status } = task.work;
  const [products, counts] = await engine.read([
    { buffer: sums, byteLength: productBytes(task, elements) },
    { buffer: status, byteLength: status.byteLength },
  ]);
  return { products: new Float32Array(products!.buffer), nonFinite: new Uint32Array(counts!.buffer) };
}

/** The largest f32: no divisor is below its negative. */
const FLOAT_MAX = (2 - 2 ** -23) * 2 ** 127;

/**
 * Factor of each contributor's kept values.
 * @param l1 ‖τ‖₁ of all values and of those kept, where the preset matches them. mergekit leaves vanishing norms alone
 * (sparsify.py: below 1e-7)
 */
export function rescaleFactors(
  task: TensorTask,
  preset: DeltaPreset,
  selectors: readonly Selector[],
  l1: { all: readonly number[]; kept: readonly number[] } | undefined,
): number[] {
  return selectors.map((s, i) => {
    if (!trims(s)) return 1;
    if (l1) return l1.all[i]! >= 1e-7 && l1.kept[i]! >= 1e-7 ? l1.all[i]! / l1.kept[i]! : 1;
    const density = densityOf(task.plan.models[i]!.parameters);
    return preset.rescale === '1/density' && density > 0 ? 1 / density : 1;
  });
}

/**
 * SCE's matrix-level coefficients (Wan et al. 2024): mean squares of what is kept over their sum; equal ones where the
 * sum is below `floor`, or 0.
 */
export function energyWeights(kept: ProductSums, models: number, elements: number, floor: number): number[] {
  const energies = Array.from({ length: models }, (_, i) => kept.at(i + 1, i + 1) / elements);
  const sum = energies.reduce((a, b) => a + b, 0);
  return energies.map((energy) => (sum > 0 && sum >= floor ? energy / sum : 1 / models));
}

/** Weights, scales and the reciprocal of the divisor for every set of agreeing models (see shaders/combine/combine.wgsl). */
export function writeCoefficients(
  task: TensorTask,
  preset: DeltaPreset,
  given: readonly number[],
  scales: readonly number[],
): void {
  const { work } = task;
  const weights = given.map(Math.fround);
  const n = weights.length;
  const bySet = dividesBySet(preset);
  const table = new Float32Array(coefficientWords(n, bySet));
  table.set(weights, 0);
  table.set(scales, n);
  const divisors = table.subarray(2 * n);
  if (bySet && n > MOST_IN_TABLE) {
    // no table: the kernel adds up what the agreeing ones bring
    if (preset.normalize) divisors.set(preset.divisor === 'count' ? weights.map(() => 1) : weights);
    divisors[n] = preset.floor ?? -FLOAT_MAX;
  } else {
    for (let set = 0; set < divisors.length; set++) {
      const agreeing = bySet ? weights.filter((_, i) => (set >> i) & 1) : weights;
      divisors[set] = preset.normalize ? reciprocal(preset, agreeing) : 1;
    }
  }
  work.engine.write(work.coefficients, 0, new Uint8Array(exactFloats(table).buffer));
}

/** Whether the divisor is that of the models which agree in an element, not one for all. */
export function dividesBySet({ consensus, normalize, divisor }: DeltaPreset): boolean {
  return consensus !== 'none' || (normalize && divisor === 'count');
}

/** 1 / divisor of a set of agreeing models, from their weights. */
function reciprocal(preset: DeltaPreset, agreeing: readonly number[]): number {
  return reciprocalOf(
    preset,
    agreeing.length,
    agreeing.reduce((a, b) => a + b, 0),
  );
}

/** The same from how many agree and the sum of their weights. */
export function reciprocalOf(preset: DeltaPreset, count: number, sum: number): number {
  if (preset.divisor === 'count') return 1 / Math.max(1, count);
  if (preset.floor !== undefined) return 1 / (sum === 0 ? 1 : Math.max(sum, preset.floor));
  // mergekit: an exact 0 (consensus) or |Σw| < 1e-8 (plain sum) counts as 1
  const vanishes = preset.consensus === 'none' ? Math.abs(sum) < 1e-8 : sum === 0;
  return vanishes ? 1 : 1 / sum;
}

// Merge counts, tile by tile (shaders/statistics/merge-counts.wgsl).

/** Whether a sign is elected, so that kept changes are lost. */
const elects = (election: number) => election !== ELECTION.none && election !== ELECTION.kept;

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
        election: elects(election) ? election : ELECTION.none,
        zero_negative: zeroNegative ? 1 : 0,
        dtype: packing(this.#task).dtype,
      },
      buffers: { values, coefficients, packed, counts },
    });
    return this.range();
  }

  /** The counts of a tile, for reading back. */
  range(): BufferRange {
    return { buffer: this.#task.work.counts, byteLength: this.#totals.length * 4 };
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
      lost: !elects(election) ? [] : [...this.#totals.slice(1, 1 + n)],
    };
  }
}

// Measurements of the slots in their current state.

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

  /** Products of the tile, block by block, for a kernel that writes them itself; what it comes to is `ranges`. */
  get sums(): BackendBuffer {
    return this.#sums;
  }

  /**
   * Enqueues the measuring of a tile as it stands; returns what to read back.
   * @param of of a tile that is measured as it is stored: the masks that it is measured by, and windows to be counted
   */
  run(
    tile: Tile,
    elements: number,
    of: { masks?: ChangeMasks | undefined; windows?: WindowList | undefined } = {},
  ): BufferRange[] {
    const { work, form } = this.#task;
    if (form === 'stored changes') {
      runMeasure(this.#task, tile, elements, { sums: this.#sums, norms: this.#norms }, of);
      return this.ranges(elements);
    }
    runProducts(this.#task, elements, this.#sums);
    for (let i = 0; this.#norms && i < this.l1.length; i++) {
      work.engine.run(absoluteSum, {
        params: { elements, slot: (i + 1) * work.stride, out: i * blockCount(elements) },
        buffers: { values: work.values, sums: this.#norms },
      });
    }
    return this.ranges(elements);
  }

  /** What to read back of a tile. */
  ranges(elements: number): BufferRange[] {
    const words = blockCount(elements) * 4;
    const models = this.l1.length;
    const sums = { buffer: this.#sums, byteLength: words * pairCount(models + 1) };
    return this.#norms ? [sums, { buffer: this.#norms, byteLength: words * models }] : [sums];
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

// The end of a tile for merges outside the delta pipeline: statistics, encoding, the check for NaN and infinities.

/** Sums over the tiles of a tensor. */
export class TileSums {
  readonly products: ProductSums;
  /** Σ (out − W₀)², against zero where there is no base. */
  change = 0;
  nonFinite = 0;
  readonly #counted: CountSums;

  constructor(
    private readonly task: TensorTask,
    private readonly policy: 'stop' | 'carry',
  ) {
    this.#counted = new CountSums(task, 0);
    this.products = new ProductSums(task.plan.models.length + 1);
  }

  /** Adds the products of all slots of the tile as it stands. @throws AmalgamError `NonFinite` */
  async measure(elements: number): Promise<void> {
    runProducts(this.task, elements);
    const { products, nonFinite } = await readProducts(this.task, elements);
    requireFinite(this.task, nonFinite, this.policy);
    this.products.add(products);
  }

  /**
   * Emits the packed tile, whose change lies in `work.stats`.
   * @param measured whether the products have been taken in an earlier pass
   */
  async finish(elements: number, measured: boolean, emit: Emit): Promise<void> {
    const { work } = this.task;
    const blocks = blockCount(elements);
    const bytes = measured ? 0 : runProducts(this.task, elements);
    const countRange = this.#counted.run(elements, { election: ELECTION.none, zeroNegative: false });
    const [encoded, status, squares, countData, products] = await readTile(this.task, elements, [
      { buffer: work.stats, byteLength: blocks * 4 },
      countRange,
      { buffer: work.sums, byteLength: bytes },
    ]);
    this.#counted.add(countData!);
    this.nonFinite += requireFinite(this.task, status, this.policy);
    for (const square of new Float32Array(squares!.buffer)) this.change += square;
    if (!measured) this.products.add(new Float32Array(products!.buffer));
    await emit(encoded);
  }

  /** Counts over all tiles. */
  counts(): MergeCounts {
    return this.#counted.counts(ELECTION.none);
  }
}
