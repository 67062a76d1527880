/**
 * The delta pipeline: τᵢ = Wᵢ − W₀ → select → rescale → combine (weights, sign consensus, divisor) → ×λ → + W₀ →
 * round once. Every delta method is a preset of it (DESIGN §4, docs/methods.md).
 */
import { blockCount } from '../compute/kernel';
import { absoluteSum } from '../compute/kernels/absolute-sum';
import { combine } from '../compute/kernels/combine';
import { countEqual } from '../compute/kernels/count-equal';
import { gram, pairCount } from '../compute/kernels/gram';
import { HISTOGRAM_BINS, HISTOGRAM_ELEMENTS, histogram } from '../compute/kernels/histogram';
import { selectRandom } from '../compute/kernels/select-random';
import { selectThreshold } from '../compute/kernels/select-threshold';
import { maskKey } from '../compute/philox';
import { encodeTile, requireFinite } from './encode-tile';
import type { DeltaPreset } from './method';
import {
  beginSearch,
  DIGITS,
  findCut,
  KEEP_NONE,
  keptCount,
  keyToMagnitude,
  NO_CUT,
  narrow,
  type Search,
  type Threshold,
} from './radix-select';
import { type Emit, GramSums, ratio, type TensorStatistics } from './tensor-outcome';
import type { TensorTask } from './tensor-task';

export interface DeltaSettings {
  preset: DeltaPreset;
  seed: number;
  nonFinite: 'stop' | 'carry';
}

/** How one contributor's task vector is selected in this tensor. */
interface Selector {
  density: number;
  /** Elements to keep for top-k; undefined for random. */
  k?: number;
  search?: Search;
  threshold?: Threshold;
  random?: { below: number; key: [number, number] };
}

/** Merges one tensor and hands its bytes to `emit`. @throws AmalgamError `NonFinite` */
export async function mergeDelta(
  task: TensorTask,
  settings: DeltaSettings,
  emit: Emit,
): Promise<TensorStatistics> {
  const { plan } = task;
  const { preset } = settings;
  const models = plan.models.length;
  const selectors = plan.models.map((m) => selectorFor(m.id, m.ordinal, Number(m.parameters.density ?? 1)));
  const full = new GramSums(models + 1);
  const matchesL1 = preset.rescale === 'l1' && selectors.some(selects);

  function selectorFor(id: string, ordinal: number, density: number): Selector {
    if (preset.select === 'all' || density >= 1) return { density: 1 };
    if (preset.select === 'top-k') {
      const k = keptCount(density, plan.elements);
      return k === 0
        ? { density, k, threshold: KEEP_NONE }
        : { density, k, search: beginSearch(k, plan.elements) };
    }
    const model = ordinal === 0 ? id : `${id}#${ordinal}`;
    const key = maskKey(settings.seed, model, plan.name);
    return { density, random: { below: Math.floor(density * 2 ** 32), key } };
  }

  let norms: number[] = [];
  let measured = false;
  if (selectors.some((s) => s.search) || matchesL1) {
    norms = await firstSweep(task, selectors, full, matchesL1, settings);
    measured = true;
    await finishSearches(task, selectors);
  }
  const scales = await rescaleFactors(task, preset, selectors, norms, matchesL1);
  writeCoefficients(task, preset, scales);
  return lastSweep(task, selectors, full, measured, settings, emit);
}

/** First sweep: products of all slots, ‖τ‖₁ where asked, first digit of every search. Returns the L1 norms. */
async function firstSweep(
  task: TensorTask,
  selectors: Selector[],
  full: GramSums,
  wantsL1: boolean,
  settings: DeltaSettings,
): Promise<number[]> {
  const { work } = task;
  const { engine } = work;
  const models = selectors.length;
  const l1 = new Array<number>(models).fill(0);
  engine.clear(work.bins);
  await task.sweep(async (_, elements) => {
    runHistograms(task, selectors, 0, elements);
    const sums = await gramAndL1(task, elements, wantsL1);
    requireFinite(task, sums.status, settings.nonFinite);
    full.add(sums.gram);
    for (let i = 0; i < models; i++) l1[i]! += sums.l1[i] ?? 0;
  });
  await takeDigit(task, selectors, 0);
  return l1;
}

/** Digits two and three, then the cut among equals. */
async function finishSearches(task: TensorTask, selectors: Selector[]): Promise<void> {
  const { work, plan } = task;
  const { engine } = work;
  if (!selectors.some((s) => s.search)) return;
  for (const digit of [1, 2]) {
    engine.clear(work.bins);
    await task.sweep(async (_, elements) => runHistograms(task, selectors, digit, elements));
    await takeDigit(task, selectors, digit);
  }
  const tied = selectors.filter((s) => s.search && s.search.wanted < s.search.available);
  for (const s of selectors) {
    if (s.search && !tied.includes(s)) s.threshold = { key: s.search.prefix, cutBlock: NO_CUT, cutQuota: 0 };
  }
  if (tied.length === 0) return;
  const equal = tied.map(() => new Uint32Array(blockCount(plan.elements)));
  await task.sweep(async (tile, elements) => {
    const blocks = blockCount(elements);
    tied.forEach((s, t) => {
      engine.run(countEqual, {
        params: {
          elements,
          slot: (selectors.indexOf(s) + 1) * work.stride,
          key: s.search!.prefix,
          out: t * blocks,
        },
        buffers: { values: work.values, counts: work.sums },
        groups: blocks,
        elements,
      });
    });
    const [bytes] = await engine.read([{ buffer: work.sums, byteLength: tied.length * blocks * 4 }]);
    const counts = new Uint32Array(bytes!.buffer);
    const firstBlock = blockCount(tile.begin);
    for (const [t, all] of equal.entries())
      all.set(counts.subarray(t * blocks, (t + 1) * blocks), firstBlock);
  });
  for (const [t, s] of tied.entries()) s.threshold = findCut(s.search!.prefix, s.search!.wanted, equal[t]!);
}

function runHistograms(task: TensorTask, selectors: Selector[], digit: number, elements: number): void {
  const { work } = task;
  const { shift, bins, prefixShift } = DIGITS[digit]!;
  for (const [i, s] of selectors.entries()) {
    if (!s.search) continue;
    work.engine.run(histogram, {
      params: {
        elements,
        slot: (i + 1) * work.stride,
        shift,
        bins,
        prefix_shift: prefixShift,
        prefix: s.search.prefix,
        out: i * HISTOGRAM_BINS,
      },
      buffers: { values: work.values, bins: work.bins },
      groups: Math.ceil(elements / HISTOGRAM_ELEMENTS),
      elements,
    });
  }
}

/** Reads one digit's histograms (accumulated over all tiles) and narrows every search. */
async function takeDigit(task: TensorTask, selectors: Selector[], digit: number): Promise<void> {
  if (!selectors.some((s) => s.search)) return;
  const { engine, bins } = task.work;
  const [bytes] = await engine.read([{ buffer: bins, byteLength: selectors.length * HISTOGRAM_BINS * 4 }]);
  const counts = new Uint32Array(bytes!.buffer);
  for (const [i, s] of selectors.entries()) {
    if (s.search)
      s.search = narrow(s.search, digit, counts.subarray(i * HISTOGRAM_BINS, (i + 1) * HISTOGRAM_BINS));
  }
}

/** Products of all slots and, where asked, ‖·‖₁ of every contributor, for the tile as it stands in the slots. */
async function gramAndL1(task: TensorTask, elements: number, wantsL1: boolean) {
  const { work, plan } = task;
  const { engine, stride } = work;
  const models = plan.models.length;
  const blocks = blockCount(elements);
  const l1 = wantsL1 ? engine.allocate(models * blocks * 4, 'l1 sums') : undefined;
  runGram(task, elements);
  if (l1) {
    for (let i = 0; i < models; i++) {
      engine.run(absoluteSum, {
        params: { elements, slot: (i + 1) * stride, out: i * blocks },
        buffers: { values: work.values, sums: l1 },
        groups: blocks,
        elements,
      });
    }
  }
  const [gramBytes, status, l1Bytes] = await engine.read([
    { buffer: work.sums, byteLength: blocks * pairCount(models + 1) * 4 },
    { buffer: work.status, byteLength: work.status.byteLength },
    ...(l1 ? [{ buffer: l1, byteLength: models * blocks * 4 }] : []),
  ]);
  if (l1) engine.free(l1);
  const sums = l1Bytes ? new Float32Array(l1Bytes.buffer) : new Float32Array(0);
  return {
    gram: new Float32Array(gramBytes!.buffer),
    status: new Uint32Array(status!.buffer),
    l1: Array.from({ length: l1 ? models : 0 }, (_, i) =>
      sums.subarray(i * blocks, (i + 1) * blocks).reduce((a, b) => a + b, 0),
    ),
  };
}

function runGram(task: TensorTask, elements: number): void {
  const { work, plan } = task;
  work.engine.run(gram, {
    params: { elements, slot: 0, stride: work.stride, count: plan.models.length + 1 },
    buffers: { values: work.values, sums: work.sums },
    groups: blockCount(elements),
    elements,
  });
}

/** Applies every selector to the tile in place; counts go to `work.kept`. */
function runSelectors(task: TensorTask, selectors: Selector[], begin: number, elements: number): void {
  const { work } = task;
  work.engine.clear(work.kept);
  for (const [i, s] of selectors.entries()) {
    const common = { elements, slot: (i + 1) * work.stride, out: i };
    const buffers = { values: work.values, kept: work.kept };
    const groups = blockCount(elements);
    if (s.threshold) {
      const { key, cutBlock, cutQuota } = s.threshold;
      const params = {
        ...common,
        key,
        first_block: blockCount(begin),
        cut_block: cutBlock,
        cut_quota: cutQuota,
      };
      work.engine.run(selectThreshold, { params, buffers, groups, elements });
    } else if (s.random) {
      const { below, key } = s.random;
      const params = { ...common, first: begin, below, key0: key[0], key1: key[1] };
      work.engine.run(selectRandom, { params, buffers, groups, elements });
    }
  }
}

function selects(s: Selector): boolean {
  return s.threshold !== undefined || s.random !== undefined || s.search !== undefined;
}

/** What kept values of each contributor are multiplied by. L1 matching needs one sweep of its own. */
async function rescaleFactors(
  task: TensorTask,
  preset: DeltaPreset,
  selectors: Selector[],
  l1: number[],
  matchesL1: boolean,
): Promise<number[]> {
  if (!matchesL1) {
    return selectors.map((s) => (preset.rescale === '1/density' && s.density > 0 ? 1 / s.density : 1));
  }
  const kept = new Array<number>(selectors.length).fill(0);
  await task.sweep(async (tile, elements) => {
    runSelectors(task, selectors, tile.begin, elements);
    const sums = await gramAndL1(task, elements, true);
    for (let i = 0; i < kept.length; i++) kept[i]! += sums.l1[i]!;
  });
  // mergekit leaves vanishing norms alone (sparsify.py: below 1e-7)
  return selectors.map((s, i) => (selects(s) && l1[i]! >= 1e-7 && kept[i]! >= 1e-7 ? l1[i]! / kept[i]! : 1));
}

/** Weights, scales and the reciprocal of the divisor for every set of agreeing models (see shaders/combine.wgsl). */
function writeCoefficients(task: TensorTask, preset: DeltaPreset, scales: number[]): void {
  const { work, plan } = task;
  const weights = plan.models.map((m) => Math.fround(Number(m.parameters.weight)));
  const n = weights.length;
  const sets = preset.consensus === 'sum' ? 2 ** n : 1;
  const table = new Float32Array(2 * n + sets);
  table.set(weights, 0);
  table.set(scales, n);
  for (let set = 0; set < sets; set++) {
    const agreeing = preset.consensus === 'sum' ? weights.filter((_, i) => (set >> i) & 1) : weights;
    const divisor = agreeing.reduce((a, b) => a + b, 0);
    // mergekit: an exact 0 (consensus) or |Σw| < 1e-8 (plain sum) counts as 1
    const vanishes = preset.consensus === 'sum' ? divisor === 0 : Math.abs(divisor) < 1e-8;
    table[2 * n + set] = preset.normalize && !vanishes ? 1 / divisor : 1;
  }
  work.engine.write(work.coefficients, 0, new Uint8Array(table.buffer));
}

/** Last sweep: select, combine, encode, emit; products of what was kept and the change of the output on the way. */
async function lastSweep(
  task: TensorTask,
  selectors: Selector[],
  full: GramSums,
  measured: boolean,
  settings: DeltaSettings,
  emit: Emit,
): Promise<TensorStatistics> {
  const { plan, work } = task;
  const { engine } = work;
  const models = plan.models.length;
  const kept = new Array<number>(models).fill(0);
  const keptSums = new GramSums(models + 1);
  let conflicts = 0;
  let change = 0;
  let nonFinite = 0;
  const trims = selectors.some(selects);
  await task.sweep(async (tile, elements) => {
    if (trims && !measured) {
      // nothing was searched: this sweep is the only one, so the task vectors are measured before they are trimmed
      const sums = await gramAndL1(task, elements, false);
      requireFinite(task, sums.status, settings.nonFinite);
      full.add(sums.gram);
    }
    const blocks = blockCount(elements);
    runSelectors(task, selectors, tile.begin, elements);
    runGram(task, elements);
    engine.run(combine, {
      params: {
        elements,
        stride: work.stride,
        models,
        consensus: settings.preset.consensus === 'sum' ? 1 : 0,
        lambda: settings.preset.lambda,
      },
      buffers: { values: work.values, coefficients: work.coefficients, out: work.merged, stats: work.stats },
      groups: blocks,
      elements,
    });
    const [bytes, status, gramBytes, keptBytes, statsBytes] = await encodeTile(task, work.merged, elements, [
      { buffer: work.sums, byteLength: blocks * pairCount(models + 1) * 4 },
      { buffer: work.kept, byteLength: work.kept.byteLength },
      { buffer: work.stats, byteLength: blocks * 8 },
    ]);
    nonFinite += requireFinite(task, status, settings.nonFinite);
    keptSums.add(new Float32Array(gramBytes!.buffer));
    const counts = new Uint32Array(keptBytes!.buffer);
    for (const [i, s] of selectors.entries()) kept[i]! += selects(s) ? counts[i]! : elements;
    const stats = new Uint32Array(statsBytes!.buffer);
    const squares = new Float32Array(statsBytes!.buffer);
    for (let b = 0; b < blocks; b++) {
      conflicts += stats[2 * b]!;
      change += squares[2 * b + 1]!;
    }
    await emit(bytes);
  });
  const whole = trims ? full : keptSums;
  return {
    contributors: plan.models.map((m, i) => ({
      id: m.id,
      kept: kept[i]!,
      threshold: thresholdOf(selectors[i]!),
      norm: whole.norm(i + 1),
      keptNorm: keptSums.norm(i + 1),
    })),
    signConflict: ratio(conflicts, plan.elements),
    cosine: whole.cosines(1),
    outputChange: ratio(Math.sqrt(change), whole.norm(0)),
    nonFinite,
  };
}

function thresholdOf(s: Selector): number {
  return s.k !== undefined && s.k > 0 && s.threshold ? keyToMagnitude(s.threshold.key) : 0;
}
