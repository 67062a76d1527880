/**
 * Selections by a score that all contributors share: where the models differ most (SCE), and where a change stands out
 * against the rest of the tensor (Arcee fusion). The score of a tile lies in `work.packed`, which is free until the
 * tile is encoded.
 */
import { exactFloats } from '../../backend/exact';
import { blockCount } from '../../backend/kernel';
import { countEqual } from '../../backend/kernels/search';
import { maskByScore, rowScore, selectThreshold } from '../../backend/kernels/select';
import { variance } from '../../backend/kernels/statistics';
import type { DeltaPreset } from '../method';
import { searchKeys } from './radix-search';
import {
  beginSearch,
  KEEP_NONE,
  type KeySearch,
  keyToMagnitude,
  magnitudeToKey,
  NO_CUT,
  type Threshold,
  thresholdWords,
} from './radix-select';
import type { Score } from './score';
import type { TensorTask } from './tensor-task';
import { rowLength, type Tile } from './tiles';

/**
 * KL(softmax(b) ‖ softmax(a)) row by row, in f64 on the host, for both engines alike: a divergence of nearly equal,
 * nearly uniform distributions is a sum that cancels to its last digits in f32, and a GPU's exponential is not
 * reproducible. Only the choice of elements depends on it, and it is computed once per tensor.
 */

/** mergekit 0.1.4 adds this to both distributions (`arcee_fusion.py`). */
const FLOOR = 1e-8;

/**
 * Divergence of every row of b = a + change from a, both distributions raised by 1e-8.
 *
 * With p and q the raised distributions, which have equal sums, Σ p·ln(p/q) = Σ q·h(p/q − 1) with
 * h(u) = (1 + u)·ln(1 + u) − u ≥ 0: no term cancels another.
 *
 * @param base a, whole rows of `cols`, f32
 * @param change b − a, f32
 */
function rowDivergences(base: Float32Array, change: Float32Array, cols: number): Float64Array {
  const p = new Float64Array(cols);
  const q = new Float64Array(cols);
  return Float64Array.from({ length: base.length / cols }, (_, row) => {
    const at = row * cols;
    for (let c = 0; c < cols; c++) {
      q[c] = base[at + c]!;
      p[c] = base[at + c]! + change[at + c]!;
    }
    softmax(p);
    softmax(q);
    let total = 0;
    for (let c = 0; c < cols; c++) {
      const raised = q[c]! + FLOOR;
      total += raised * excess((p[c]! - q[c]!) / raised);
    }
    return total;
  });
}

/** Replaces values by their softmax. */
function softmax(values: Float64Array): void {
  let top = Number.NEGATIVE_INFINITY;
  for (let c = 0; c < values.length; c++) top = Math.max(top, values[c]!);
  let sum = 0;
  for (let c = 0; c < values.length; c++) {
    values[c] = Math.exp(values[c]! - top);
    sum += values[c]!;
  }
  for (let c = 0; c < values.length; c++) values[c] = values[c]! / sum;
}

/** h(u) = (1 + u)·ln(1 + u) − u for u > −1, accurate for small u. */
function excess(u: number): number {
  if (Math.abs(u) > 0.01) return (1 + u) * Math.log1p(u) - u;
  // Σ_{k ≥ 2} (−u)^k / (k·(k − 1))
  return u * u * (1 / 2 - u * (1 / 6 - u * (1 / 12 - u * (1 / 20 - u * (1 / 30 - u * (1 / 42 - u / 56))))));
}

/** The score of a preset, or undefined where every contributor is selected by itself, or all is kept. */
export async function scoreOf(task: TensorTask, preset: DeltaPreset): Promise<Score | undefined> {
  if (preset.select === 'variance' && (preset.share ?? 1) < 1) return varianceScore(task, preset.share ?? 1);
  if (preset.score) return (await preset.score())(task);
  return preset.select === 'fusion' ? fusionScore(task) : undefined;
}

/** Keeps ⌊share · n⌋ of the n elements whose variance over the models is not 0 (mergekit 0.1.4, `sce.py`). */
function varianceScore(task: TensorTask, share: number): Score {
  const { work, plan } = task;
  const { elements: total } = plan;
  const models = plan.models.length;
  const search: KeySearch = { buffer: work.packed, offset: 0, search: beginSearch(0, total) };
  let zeros = 0;
  let threshold: Threshold = KEEP_NONE;
  const fill = (_: Tile, elements: number) =>
    work.engine.run(variance, {
      params: { elements, stride: work.stride, models },
      buffers: { values: work.values, score: work.packed },
    });
  return {
    async measure(tile, elements) {
      fill(tile, elements);
      const blocks = blockCount(elements);
      work.engine.run(countEqual, {
        params: { elements, slot: 0, key: 0, out: 0 },
        buffers: { values: work.packed, counts: work.stats },
      });
      const [bytes] = await work.engine.read([{ buffer: work.stats, byteLength: blocks * 4 }]);
      for (const n of new Uint32Array(bytes!.buffer)) zeros += n;
    },
    async search() {
      const k = Math.floor(share * (total - zeros));
      if (k === 0) return;
      search.search = beginSearch(k, total);
      await searchKeys(task, [search], fill);
      threshold = search.threshold!;
    },
    trim(tile, elements) {
      fill(tile, elements);
      maskTile(task, tile, elements, threshold);
    },
  };
}

/**
 * Keeps what has an importance |τ|·KL(row) of at least median + 1.5·(q₃ − q₁), quantiles being order statistics without
 * interpolation (mergekit 0.1.4, `arcee_fusion.py`; exact here for every size, not of a random million).
 */
function fusionScore(task: TensorTask): Score {
  const { work, plan } = task;
  const { elements: total } = plan;
  const cols = rowLength(plan.shape);
  const divergences = new Float64Array(total / cols);
  let factors = new Float32Array(0);
  const quantile = (q: number): KeySearch => ({
    buffer: work.packed,
    offset: 0,
    search: beginSearch(total - Math.floor(q * (total - 1)), total),
  });
  const [q1, median, q3] = [quantile(0.25), quantile(0.5), quantile(0.75)];
  let threshold: Threshold | undefined;
  const fill = (tile: Tile, elements: number) => {
    const rows = elements / cols;
    const factor = work.engine.allocate(rows * 4, 'row divergences');
    const first = tile.begin / cols;
    work.engine.write(factor, 0, new Uint8Array(factors.slice(first, first + rows).buffer));
    work.engine.run(rowScore, {
      params: { elements, slot: work.stride, cols },
      buffers: { values: work.values, factor, score: work.packed },
    });
    work.engine.free(factor);
  };
  return {
    async measure(tile, elements) {
      const [base, tau] = await work.engine.read([
        { buffer: work.values, byteLength: elements * 4 },
        { buffer: work.values, byteOffset: work.stride * 4, byteLength: elements * 4 },
      ]);
      divergences.set(
        rowDivergences(new Float32Array(base!.buffer), new Float32Array(tau!.buffer), cols),
        tile.begin / cols,
      );
    },
    async search() {
      // the selection does not depend on a common factor; with the largest near 1 no importance underflows
      const largest = divergences.reduce((a, b) => Math.max(a, b), 0);
      const scale = largest > 0 ? 2 ** -Math.floor(Math.log2(largest)) : 1;
      factors = exactFloats(divergences.map((d) => d * scale));
      await searchKeys(task, [q1, median, q3], fill);
      const [a, b, c] = [q1, median, q3].map((s) => keyToMagnitude(s.search.prefix));
      const value = Math.fround(b! + Math.fround(1.5 * Math.fround(c! - a!)));
      threshold = { key: magnitudeToKey(value), cutBlock: NO_CUT, cutQuota: 0 };
    },
    trim(tile, elements) {
      fill(tile, elements);
      maskTile(task, tile, elements, threshold!);
    },
  };
}

/** Trims the score, then every task vector where nothing of the score is left. */
function maskTile(task: TensorTask, tile: Tile, elements: number, threshold: Threshold): void {
  const { work, plan } = task;
  work.engine.run(selectThreshold, {
    params: {
      elements,
      slot: 0,
      first_block: blockCount(tile.begin),
      ...thresholdWords(threshold),
      out: 0,
    },
    buffers: { values: work.packed, kept: work.kept },
  });
  if (threshold.key === 0) return; // even a score of 0 reaches the threshold: everything stays
  work.engine.run(maskByScore, {
    params: { elements, stride: work.stride, models: plan.models.length },
    buffers: { score: work.packed, values: work.values },
  });
}
