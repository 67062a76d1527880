/** Selection of the elements of each task vector: thresholds, random draws, ranks, or a score that all share. */

import type { BackendBuffer } from '../../backend/backend';
import { exact } from '../../backend/exact';
import { blockCount } from '../../backend/kernel';
import { RANK_SHIFTS, rankDigit } from '../../backend/kernels/search';
import {
  MOST_UNRANKED,
  selectMask,
  selectRandom,
  selectRank,
  selectThreshold,
} from '../../backend/kernels/select';
import { maskKey } from '../../backend/philox';
import type { DeltaPreset } from '../method';
import type { ResolvedParameters } from '../plan/plan';
import { type Prepared, type PreparedSelection, requirePrepared } from './prepared';
import {
  beginSearch,
  KEEP_NONE,
  type KeySearch,
  keptCount,
  keyToMagnitude,
  NO_CUT,
  type Threshold,
  thresholdWords,
} from './radix-select';
import type { TensorTask } from './tensor-task';
import { rowLength, type Tile } from './tiles';

/** How one contributor's task vector is selected in this tensor. */
export type Selector =
  | { kind: 'all' }
  /** Inside `outer`, not inside `inner`; a search becomes a threshold when it is finished. */
  | { kind: 'threshold'; outer: KeySearch | Threshold; inner: KeySearch | Threshold }
  | { kind: 'random'; below: number; key: [number, number] }
  /** `scaled`: kept elements are multiplied by a factor of their rank. */
  | { kind: 'rank'; table: BackendBuffer; scaled: boolean; key: [number, number] }
  /** By a score of the tensor (delta-score.ts); `own`: each model keeps what its own leaves. */
  | { kind: 'score'; own?: true }
  /** Selected by calibration. */
  | { kind: 'prepared'; selection: PreparedSelection };

/** The threshold of a model that is trimmed as a whole, by its id. */
export type ModelThresholds = ReadonlyMap<string, Threshold>;

/** The selectors of a tensor's contributors, in their order. Tables are on the device until `closeSelectors`. */
export function openSelectors(
  task: TensorTask,
  preset: DeltaPreset,
  seed: number,
  thresholds: ModelThresholds | undefined,
  prepared: Prepared | undefined,
): Selector[] {
  const { plan, work } = task;
  return plan.models.map(({ id, parameters }, i) => {
    if (preset.select === 'variance') return { kind: (preset.share ?? 1) < 1 ? 'score' : 'all' };
    if (preset.select === 'fusion') return { kind: 'score' };
    if (preset.select === 'own') return { kind: 'score', own: true };
    const density = densityOf(parameters);
    if (preset.select === 'all' || density >= 1) return { kind: 'all' };
    if (density <= 0) return { kind: 'threshold', outer: KEEP_NONE, inner: KEEP_NONE };
    if (preset.select === 'prepared') {
      const selection = requirePrepared(prepared, plan.name).selection(plan.name, id);
      if (selection) return { kind: 'prepared', selection };
    }
    const key = maskKey(seed, id, plan.name);
    if (preset.select === 'random') {
      return { kind: 'random', below: Math.floor(density * 2 ** 32), key };
    }
    if (preset.select === 'rank') {
      const scaled = preset.rescale === '1/probability';
      return { kind: 'rank', table: rankTable(task, scaled, parameters), scaled, key };
    }
    if (preset.scope === 'model') {
      return { kind: 'threshold', outer: thresholds!.get(id)!, inner: KEEP_NONE };
    }
    const search = (k: number): KeySearch | Threshold =>
      k === 0
        ? KEEP_NONE
        : { buffer: work.values, offset: (i + 1) * work.stride, search: beginSearch(k, plan.elements) };
    const [outer, inner] = band(preset, parameters, plan.elements);
    return { kind: 'threshold', outer: search(outer), inner: search(inner) };
  });
}

export function closeSelectors(task: TensorTask, selectors: readonly Selector[]): void {
  for (const s of selectors) if (s.kind === 'rank') task.work.engine.free(s.table);
}

export function densityOf(parameters: ResolvedParameters): number {
  return Number(parameters.density ?? 1);
}

/**
 * How many of the largest |τ| are inside the outer and inside the inner threshold. Breadcrumbs (Davari and
 * Belilovsky 2023) as in mergekit 0.1.4, `sparsify.py`: of n elements ⌊γn⌋ largest go, ⌊ρn⌋ below them stay, and where
 * that is more than there are, fewer of the largest go.
 */
export function band(
  preset: DeltaPreset,
  parameters: ResolvedParameters,
  elements: number,
): [outer: number, inner: number] {
  const k = keptCount(densityOf(parameters), elements);
  if (preset.select !== 'band') return [k, 0];
  const dropped = Math.min(Math.floor(Number(parameters.gamma) * elements), elements - k);
  return [dropped + k, dropped];
}

/**
 * Probabilities and scales by rank r = 0 … n − 1 in a row of n: q_r = (ρ − ε) + 2ε·r/(n − 1), and ρ in a row of one
 * (MagPrune, Deep et al. 2024). As words: ⌊q_r·2³²⌋, then the scales as f32.
 */
function rankProbabilities(density: number, epsilon: number, cols: number): Float64Array {
  return Float64Array.from({ length: cols }, (_, r) =>
    cols === 1 ? density : density - epsilon + (2 * epsilon * r) / (cols - 1),
  );
}

function rankTable(task: TensorTask, scaled: boolean, parameters: ResolvedParameters): BackendBuffer {
  const { engine } = task.work;
  const cols = rowLength(task.plan.shape);
  const q = rankProbabilities(densityOf(parameters), Number(parameters.epsilon), cols);
  const words = new Uint32Array(2 * cols);
  const scales = new Float32Array(words.buffer);
  for (let r = 0; r < cols; r++) {
    words[r] = Math.floor(q[r]! * 2 ** 32);
    scales[cols + r] = scaled ? exact(1 / q[r]!) : 1;
  }
  const table = engine.allocate(words.byteLength, 'rank table');
  engine.write(table, 0, new Uint8Array(words.buffer));
  return table;
}

/** The searches that must be finished before the selectors can be applied. */
export function openSearches(selectors: readonly Selector[]): KeySearch[] {
  return selectors.flatMap((s) =>
    s.kind === 'threshold' ? [s.outer, s.inner].filter((t): t is KeySearch => 'search' in t) : [],
  );
}

/**
 * Trims every task vector of the tile in place. The numbers kept go to `work.kept`, which was cleared, but for what was
 * prepared: that knows its number itself.
 */
export async function applySelectors(
  task: TensorTask,
  selectors: readonly Selector[],
  tile: Tile,
  elements: number,
): Promise<void> {
  const { work } = task;
  for (const [i, s] of selectors.entries()) {
    const common = { elements, slot: (i + 1) * work.stride, out: i };
    const buffers = { values: work.values, kept: work.kept };
    if (s.kind === 'threshold') {
      const cuts = thresholdWords(thresholdOf(s.outer), thresholdOf(s.inner));
      const params = { ...common, first_block: blockCount(tile.begin), ...cuts };
      work.engine.run(selectThreshold, { params, buffers });
    } else if (s.kind === 'random') {
      const params = { ...common, first: tile.begin, below: s.below, key0: s.key[0], key1: s.key[1] };
      work.engine.run(selectRandom, { params, buffers });
    } else if (s.kind === 'rank') {
      const cols = rowLength(task.plan.shape);
      const ranked = s.scaled || cols > MOST_UNRANKED ? 1 : 0;
      const ranks = rankRows(task, i + 1, cols, elements, ranked);
      const params = { ...common, first: tile.begin, cols, key0: s.key[0], key1: s.key[1], ranked };
      work.engine.run(selectRank, { params, buffers: { ...buffers, ranks, table: s.table } });
    } else if (s.kind === 'prepared') await applyPrepared(task, s.selection, i + 1, tile, elements);
  }
}

async function applyPrepared(
  { work }: TensorTask,
  selection: PreparedSelection,
  slot: number,
  { begin, end }: Tile,
  elements: number,
): Promise<void> {
  const { engine, values, stride } = work;
  if (selection.kind === 'values') {
    const chosen = await selection.values(begin, end);
    engine.write(values, slot * stride * 4, new Uint8Array(chosen.buffer, chosen.byteOffset, elements * 4));
    return;
  }
  const words = await selection.mask(begin, end);
  const mask = engine.allocate(words.byteLength, 'mask');
  engine.write(mask, 0, new Uint8Array(words.buffer, words.byteOffset, words.byteLength));
  engine.run(selectMask, { params: { elements, slot: slot * stride, first: 0 }, buffers: { mask, values } });
  engine.free(mask);
}

/** The threshold of a search that is finished. */
export function thresholdOf(t: KeySearch | Threshold): Threshold {
  return 'search' in t ? t.threshold! : t;
}

/**
 * Ranks of |τ| inside the rows of the tile. The orders of the passes lie in `merged` and `packed`, which are free until
 * the tile is combined and encoded.
 */
function rankRows(
  task: TensorTask,
  slot: number,
  cols: number,
  elements: number,
  ranked: 0 | 1,
): BackendBuffer {
  const { work } = task;
  let from = work.merged;
  let to = work.packed;
  for (const [pass, shift] of RANK_SHIFTS.entries()) {
    work.engine.run(rankDigit, {
      params: {
        elements,
        slot: slot * work.stride,
        cols,
        shift,
        first: pass === 0 ? 1 : 0,
        last: pass === RANK_SHIFTS.length - 1 ? 1 : 0,
        ranked,
      },
      buffers: { values: work.values, order_in: from, order_out: to },
    });
    [from, to] = [to, from];
  }
  return from;
}

/** True for a selector that drops something. */
export function trims(s: Selector): boolean {
  return s.kind !== 'all';
}

/** Smallest |τ| that a selector lets through, where that is a threshold; else 0. */
export function reportedThreshold(s: Selector): number {
  if (s.kind !== 'threshold') return 0;
  const { key, cutBlock, cutQuota } = thresholdOf(s.outer);
  const keepsNone = key === KEEP_NONE.key && cutBlock === 0 && cutQuota === 0;
  return keepsNone ? 0 : keyToMagnitude(key);
}

/** A threshold that keeps every |τ| of at least the key's. */
export function inclusiveThreshold(key: number): Threshold {
  return { key, cutBlock: NO_CUT, cutQuota: 0 };
}
