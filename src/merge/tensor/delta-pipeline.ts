/**
 * The delta pipeline: τᵢ = Wᵢ − W₀ → select → rescale → combine (weights, sign consensus, divisor) → ×λ → + W₀ →
 * round once. Every delta method is a preset of it (DESIGN §4, docs/methods.md).
 */
import type { BackendBuffer } from '../../backend/backend';
import { exact } from '../../backend/exact';
import { blockCount } from '../../backend/kernel';
import { COMBINE_STATS, combine, ELECTION } from '../../backend/kernels/combine';
import type { DeltaPreset } from '../method';
import {
  CountSums,
  dividesBySet,
  energyWeights,
  rescaleFactors,
  SlotSums,
  writeCoefficients,
} from './delta-measure';
import { scoreOf } from './delta-score';
import {
  applySelectors,
  closeSelectors,
  type ModelThresholds,
  openSearches,
  openSelectors,
  reportedThreshold,
  type Selector,
  trims,
} from './delta-selectors';
import type { Prepared } from './prepared';
import { finishSearches } from './radix-search';
import type { KeySearch } from './radix-select';
import type { Score } from './score';
import { ChangeMasks, type Election, fillSlots, runMergeChanges, writeCuts } from './stored-changes';
import { type Emit, type ProductSums, ratio, type TensorStatistics } from './tensor-outcome';
import type { TensorTask } from './tensor-task';
import { packing, readTile, requireFinite } from './tile-encoding';
import type { Tile } from './tiles';
import { openWindows } from './window-search';

export interface DeltaSettings {
  preset: DeltaPreset;
  seed: number;
  nonFinite: 'stop' | 'carry';
  /** Measurements of the whole model, where the preset needs them (whole-model.ts). */
  wholeModel?: WholeModel;
  /** Selections made ahead of the run, where the preset takes them (prepared.ts). */
  prepared?: Prepared;
}

export interface WholeModel {
  thresholds: ModelThresholds;
  /** The sign that won most elements; 0 for a draw. */
  majority: number;
}

/** A tensor whose selection and coefficients are resolved; `close` when it is merged. */
interface Resolved {
  selectors: Selector[];
  score: Score | undefined;
  /** Factors of the kept values, per contributor. */
  scales: number[];
  /** Products of all slots before trimming and after it, where they have been measured. */
  full: ProductSums | undefined;
  kept: ProductSums | undefined;
  /** Masks of what is drawn, and the thresholds of changes that are cut as they are stored. */
  masks: ChangeMasks | undefined;
  cuts: BackendBuffer | undefined;
  /**
   * Trims the tile, unless it was left trimmed by an earlier pass; counts go to `work.kept`. Changes that are merged as they
   * are stored get their masks; thresholds are for the kernel that merges.
   */
  trim(tile: Tile, elements: number): Promise<void>;
  close(): void;
}

/** Merges one tensor and hands its bytes to `emit`. @throws AmalgamError `NonFinite` */
export async function mergeDelta(
  task: TensorTask,
  settings: DeltaSettings,
  emit: Emit,
): Promise<TensorStatistics> {
  const resolved = await resolve(task, settings);
  try {
    return await lastPass(task, resolved, settings, emit);
  } finally {
    resolved.close();
  }
}

/** How many elements of a tensor elect + and how many −, with thresholds known and every zero vote left out. */
export async function countVotes(
  task: TensorTask,
  settings: DeltaSettings,
): Promise<{ positive: number; negative: number }> {
  const resolved = await resolve(task, settings);
  const { work } = task;
  const votes = { positive: 0, negative: 0 };
  await task.pass(async (tile, elements) => {
    await resolved.trim(tile, elements);
    runCombine(task, settings, elements);
    const [bytes] = await work.engine.read([
      { buffer: work.stats, byteLength: blockCount(elements) * COMBINE_STATS * 4 },
    ]);
    const counts = new Uint32Array(bytes!.buffer);
    for (let at = 0; at < counts.length; at += COMBINE_STATS) {
      votes.positive += counts[at + 2]!;
      votes.negative += counts[at + 3]!;
    }
  });
  resolved.close();
  return votes;
}

/** Finds thresholds, scales and coefficients, in as few passes as the preset allows. */
async function resolve(task: TensorTask, settings: DeltaSettings): Promise<Resolved> {
  const { plan, work } = task;
  const { preset } = settings;
  const models = plan.models.length;
  const selectors = openSelectors(
    task,
    preset,
    settings.seed,
    settings.wholeModel?.thresholds,
    settings.prepared,
  );
  const score = await scoreOf(task, preset);
  const matchesL1 = preset.rescale === 'l1' && selectors.some(trims);
  const needsEnergy = preset.weights === 'energy';
  const searches = openSearches(selectors).length > 0 || score !== undefined;
  // what is kept has to be measured before it can be combined
  const measuresKept = matchesL1 || (needsEnergy && score !== undefined);
  // what needs no search is trimmed by the pass that measures it
  const trimsFirst = measuresKept && !searches;
  const isStored = task.form === 'stored changes';
  const masks = isStored || trimsFirst ? ChangeMasks.open(task, selectors) : undefined;
  let trimmed = false;
  const resolved: Resolved = {
    selectors,
    score,
    scales: [],
    full: undefined,
    kept: undefined,
    masks,
    cuts: undefined,
    async trim(tile, elements) {
      if (trimmed || masks?.apply(tile, elements)) return;
      work.engine.clear(work.kept);
      if (isStored) return masks?.make(tile, elements);
      score?.trim(tile, elements);
      await applySelectors(task, selectors, tile, elements);
      // a tensor of one tile stays on the device as it is left: trimming it again would trim what is left
      trimmed = task.tiles.length === 1;
      masks?.pack(tile, elements);
    },
    close() {
      closeSelectors(task, selectors);
      masks?.close();
      if (resolved.cuts) work.engine.free(resolved.cuts);
    },
  };

  const full = new SlotSums(task, matchesL1);
  const kept = new SlotSums(task, matchesL1);
  try {
    if (searches || measuresKept || needsEnergy) {
      resolved.full = full.products;
      await firstPass(task, resolved, full, trimsFirst ? kept : undefined, settings);
    }
    if (measuresKept && searches) {
      await task.pass(async (tile, elements) => {
        await resolved.trim(tile, elements);
        kept.add(await work.engine.read(kept.run(tile, elements)));
      });
    }
  } finally {
    full.close();
    kept.close();
  }
  if (measuresKept) resolved.kept = kept.products;
  const measured = measuresKept ? kept : full;
  const weights = needsEnergy
    ? energyWeights(measured.products, models, plan.elements, preset.floor ?? 0)
    : plan.models.map((m) => Number(m.parameters.weight ?? 1));
  const norms = matchesL1 ? { all: full.l1, kept: kept.l1 } : undefined;
  resolved.scales = rescaleFactors(task, preset, selectors, norms);
  writeCoefficients(task, preset, weights, resolved.scales);
  if (isStored && !masks) resolved.cuts = writeCuts(task, selectors);
  return resolved;
}

/**
 * First pass: products of all slots, ‖τ‖₁ where asked, and both again of what is kept where the selection needs no search;
 * then every search has its threshold.
 */
async function firstPass(
  task: TensorTask,
  { selectors, score, masks, trim }: Resolved,
  full: SlotSums,
  kept: SlotSums | undefined,
  settings: DeltaSettings,
): Promise<void> {
  const { engine, status, kept: counts } = task.work;
  const own: KeySearch[] = openSearches(selectors);
  const windows = own.length > 0 ? openWindows(task, own) : undefined;
  const isStored = task.form === 'stored changes';
  try {
    await task.pass(async (tile, elements) => {
      const isFirst = tile.begin === 0;
      if (isFirst || !isStored) windows?.visit(tile, elements);
      if (isStored && isFirst) await windows?.place(tile, elements);
      const ranges = full.run(tile, elements, { windows: windows?.list });
      // a sample of changes as they are stored is at hand once they are measured and counted
      if (isStored && !isFirst) windows?.visit(tile, elements);
      if (kept) {
        await trim(tile, elements);
        ranges.push(...kept.run(tile, elements, { masks }));
      }
      const [found, numbers, ...data] = await engine.read([
        { buffer: status, byteLength: status.byteLength },
        { buffer: counts, byteLength: counts.byteLength },
        ...ranges,
      ]);
      if (kept) masks?.remember(tile, numbers!);
      requireFinite(task, new Uint32Array(found!.buffer), settings.nonFinite);
      full.add(data);
      kept?.add(data);
      if (!isStored) await windows?.place(tile, elements);
      await score?.measure?.(tile, elements);
    });
    if (windows) await finishSearches(task, windows, (_, elements) => isStored && fillSlots(task, elements));
  } finally {
    windows?.close();
  }
  await score?.search();
}

/** Enqueues the merged tile, packed, into `work.packed`. */
function runCombine(task: TensorTask, settings: DeltaSettings, elements: number): void {
  const { work, plan } = task;
  const { values, coefficients, packed, stats, status } = work;
  const { election, zeroNegative } = electionOf(settings);
  work.engine.run(combine, {
    params: {
      elements,
      stride: work.stride,
      models: plan.models.length,
      election,
      zero_negative: zeroNegative ? 1 : 0,
      lambda: exact(settings.preset.lambda),
      ...packing(task),
    },
    buffers: { values, coefficients, packed, stats, status },
  });
}

function electionOf({ preset, wholeModel }: DeltaSettings): Election {
  const { consensus, ballots, zeroVote } = preset;
  const kind =
    consensus === 'none'
      ? dividesBySet(preset)
        ? 'kept'
        : 'none'
      : consensus === 'count'
        ? 'signs'
        : ballots === 'unweighted'
          ? 'values'
          : 'weighted';
  const zeroNegative = zeroVote === 'majority' && wholeModel !== undefined && wholeModel.majority <= 0;
  return { election: ELECTION[kind], zeroNegative };
}

/** Last pass: select, combine, encode, emit; products of what was kept and the change of the output on the way. */
async function lastPass(
  task: TensorTask,
  resolved: Resolved,
  settings: DeltaSettings,
  emit: Emit,
): Promise<TensorStatistics> {
  const { plan, work } = task;
  const { selectors } = resolved;
  const { preset } = settings;
  const isStored = task.form === 'stored changes';
  const models = plan.models.length;
  const kept = new Array<number>(models).fill(0);
  const election = electionOf(settings);
  const counted = new CountSums(task, models);
  let conflicts = 0;
  let change = 0;
  let nonFinite = 0;
  // where nothing was searched this pass is the only one, so the task vectors are measured before they are trimmed
  const before = !resolved.full && selectors.some(trims) ? new SlotSums(task, false) : undefined;
  const after = resolved.kept ? undefined : new SlotSums(task, false);
  const keptSums = resolved.kept ?? after!.products;
  const full = resolved.full ?? before?.products ?? keptSums;
  try {
    await task.pass(async (tile, elements) => {
      const ranges = before?.run(tile, elements) ?? [];
      const blocks = blockCount(elements);
      await resolved.trim(tile, elements);
      if (isStored) {
        const how = { ...election, lambda: preset.lambda };
        const by = { cuts: resolved.cuts, masks: resolved.masks };
        runMergeChanges(task, tile, elements, how, by, after?.sums ?? work.sums);
        if (after) ranges.push(...after.ranges(elements));
      } else {
        if (after) ranges.push(...after.run(tile, elements));
        runCombine(task, settings, elements);
        counted.run(elements, election);
      }
      const [bytes, status, keptData, statsData, countData, ...sums] = await readTile(task, elements, [
        { buffer: work.kept, byteLength: work.kept.byteLength },
        { buffer: work.stats, byteLength: blocks * COMBINE_STATS * 4 },
        counted.range(),
        ...ranges,
      ]);
      counted.add(countData!);
      nonFinite += requireFinite(task, status, settings.nonFinite);
      before?.add(sums);
      after?.add(sums);
      const counts = new Uint32Array(keptData!.buffer);
      for (const [i, s] of selectors.entries()) {
        if (s.kind === 'prepared') kept[i] = s.selection.kept;
        else kept[i]! += trims(s) ? counts[s.kind === 'score' && !s.own ? 0 : i]! : elements;
      }
      const stats = new Uint32Array(statsData!.buffer);
      const squares = new Float32Array(statsData!.buffer);
      for (let at = 0; at < stats.length; at += COMBINE_STATS) {
        conflicts += stats[at]!;
        change += squares[at + 1]!;
      }
      await emit(bytes);
    });
  } finally {
    before?.close();
    after?.close();
  }
  return {
    contributors: plan.models.map((m, i) => ({
      id: m.id,
      kept: kept[i]!,
      threshold: reportedThreshold(selectors[i]!),
      norm: full.norm(i + 1),
      keptNorm:
        preset.select === 'own' || (selectors[i]!.kind === 'rank' && preset.rescale === '1/probability')
          ? null
          : keptSums.norm(i + 1),
      rescaledNorm: resolved.scales[i]! * keptSums.norm(i + 1),
    })),
    signConflict: ratio(conflicts, plan.elements),
    cosine: full.cosines(1),
    baseNorm: full.norm(0),
    outputChange: ratio(Math.sqrt(change), full.norm(0)),
    nonFinite,
    counts: counted.counts(election.election),
  };
}
