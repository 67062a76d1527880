/** Measurements of the delta pipeline, tile by tile, and the coefficients it combines with. */
import { exactFloats } from '../../backend/exact';
import { BLOCK, blockCount } from '../../backend/kernel';
import { coefficientWords, MOST_IN_TABLE } from '../../backend/kernels/combine';
import { innerProducts, pairCount } from '../../backend/kernels/products';
import type { DeltaPreset } from '../method';
import { densityOf, type Selector, trims } from './delta-selectors';
import { reciprocal } from './divisor';
import type { ProductSums } from './tensor-outcome';
import type { TensorTask } from './tensor-task';

/** Enqueues the products of all slots of the tile, block by block into `sums`; returns the bytes to read back. */
export function runProducts(task: TensorTask, elements: number, sums = task.work.sums): number {
  const { work, plan } = task;
  const count = plan.models.length + 1;
  work.engine.run(innerProducts, {
    params: { elements, slot: 0, stride: work.stride, count, run: BLOCK },
    buffers: { values: work.values, sums },
  });
  return blockCount(elements) * pairCount(count) * 4;
}

/** The products of all slots of the tile, block by block, and what was counted of values that are not finite. */
export async function readProducts(
  task: TensorTask,
  elements: number,
): Promise<{ products: Float32Array; nonFinite: Uint32Array }> {
  const { engine, sums, status } = task.work;
  const [products, counts] = await engine.read([
    { buffer: sums, byteLength: runProducts(task, elements) },
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
  const elects = preset.consensus !== 'none';
  const table = new Float32Array(coefficientWords(n, elects));
  table.set(weights, 0);
  table.set(scales, n);
  const divisors = table.subarray(2 * n);
  if (elects && n > MOST_IN_TABLE) {
    // no table: the kernel adds up what the agreeing ones bring
    if (preset.normalize) divisors.set(preset.divisor === 'count' ? weights.map(() => 1) : weights);
    divisors[n] = preset.floor ?? -FLOAT_MAX;
  } else {
    for (let set = 0; set < divisors.length; set++) {
      const agreeing = elects ? weights.filter((_, i) => (set >> i) & 1) : weights;
      divisors[set] = preset.normalize ? reciprocal(preset, agreeing) : 1;
    }
  }
  work.engine.write(work.coefficients, 0, new Uint8Array(exactFloats(table).buffer));
}
