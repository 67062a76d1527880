/** The best merge of some models, found on text or on tasks: methods at their own λ, the Gram merges, then a search. */
import type { ErrorReport } from '../errors';
import { formatCounted, formatSeconds } from '../formats/quantity';
import type { Recipe } from '../formats/recipe';
import type { BackendChoice } from './backend';
import { signedChange } from './conclusion';
import type { RunTarget, TextInput } from './evaluate';
import { type Estimate, type LossBlock, margin, meanLoss, pairedDifference } from './paired-error';
import type { ScoreTasksRequest } from './tasks';

/** What is tried, in this order: methods that read no text, Gram merges, weights, λ and density by CMA-ES from the best on, and then methods that trim. */
export const BEST_STEPS = ['methods', 'gram', 'search'] as const;
export type BestStep = (typeof BEST_STEPS)[number];

/** The parts that every text is cut into: settings are tuned on one, rows compared on another, figures reported of a third. */
export const TEXT_PARTS = ['tuning', 'choosing', 'reporting'] as const;
export type TextPart = (typeof TEXT_PARTS)[number];

export interface FindBestRequest {
  /** Base and contributors, and what these read. Its own method and settings are one of the rows where they can be merged. */
  recipe: Recipe;
  /** Texts of the person's own. None, and no tasks: what the recipe names as `calibration`, or text the contributors generate. */
  texts: { name: string; input: TextInput }[];
  /** In place of texts. */
  tasks?: SearchTasks;
  /** Merges that are measured beside: they are rows, and none of them wins. */
  also?: { label: string; target: RunTarget }[];
  steps: readonly BestStep[];
  /** What a search has beside one value of each setting: points of a gradient over the layers, λ by kind of tensor. */
  shape?: { layers?: number; kinds?: boolean };
  /** Merges between two texts or tasks that are searched for, each with another share of the two, from 2. */
  front?: number;
  /** Seconds after which nothing more is begun. A search ends before where it brings nothing more. */
  budget: number;
  seed: number;
  engine: BackendChoice;
}

/** Items of tasks, the same for all rows, and the metric of which the mean over the tasks counts: absent, each one’s main metric. */
export interface SearchTasks
  extends Pick<ScoreTasksRequest, 'tasks' | 'limit' | 'sampleSeed' | 'fewshot' | 'fewshotSeed'> {
  metric?: string;
}

/** A text or a task, in its three parts. */
export interface BestText {
  /** Of a text that a contributor generated, the contributor's id. */
  name: string;
  /** `generated`: by a contributor. `task`: items count where tokens do elsewhere, and a loss is 1 − the metric. */
  kind: 'given' | 'generated' | 'task';
  /** Scored tokens, or items. */
  tokens: Readonly<Record<TextPart, number>>;
}

/** A model or merge, measured. */
export interface BestRow {
  /** `base`, `model <id>`, `given`, `<method>`, `gram stream`, `gram both`, `gram changes`, `search`, `front <share> : <share>`, `also <number>`: the same in every message. */
  id: string;
  kind: 'base' | 'contributor' | 'given' | 'method' | 'gram' | 'search' | 'also';
  label: string;
  /** Of a search: id of the row it began at. */
  from?: string;
  /** What it is: a model as it is, or the recipe with the λ and the settings that were found. */
  target: RunTarget;
  /** The tuned one; null where there is none. */
  lambda: number | null;
  /**
   * Losses on each part, block by block and text by text: what `paired-error.ts` reads. A part is null until it was measured;
   * base and contributors have no `tuning`, and merges that were plainly worse on `choosing` no `reporting`.
   */
  blocks: Readonly<Record<TextPart, LossBlock[][] | null>>;
  /** Merges that were measured for it. */
  tried: number;
  seconds: number;
  /** Why it could not be measured. */
  error?: ErrorReport;
}

export interface FindBestProgress {
  /** `downloading`: of what is not there yet, in bytes. `writing`: contributors generate text. */
  step: 'downloading' | 'writing' | BestStep;
  /** Label of what is under way. */
  item: string;
  /** Of the step: tokens written, rows, or merges measured. */
  done: number;
  total: number;
  /** Seconds since the beginning, and to the end of the step, never beyond the budget. */
  seconds: number;
  secondsLeft: number | null;
  /** Rows that are new or have changed since the last message. */
  rows: BestRow[];
  /** Once known. */
  texts?: BestText[];
}

export interface FindBestReport {
  texts: BestText[];
  /** In the order they were measured. */
  rows: BestRow[];
  /** Id of the winner: the simplest of those that no row is better than beyond the error, on the choosing text. */
  best: string;
  /** The least mean loss on the choosing text over time, in nats per token. */
  course: { seconds: number; row: string; loss: number }[];
  /** What the last step brought on the tuning text: seconds it took, and by how much the loss fell, in nats per token. */
  lately: { step: BestStep; seconds: number; gain: number } | null;
  /** Why it ended: all was tried, the search brought nothing more, or the time was up. */
  ended: 'done' | 'converged' | 'budget';
  /** Of each step, what was not tried. */
  left: Readonly<Record<BestStep, number>>;
  /** Share of each contributor's gain over the base on its own text that the winner keeps; null where there is no gain, or other text. */
  kept: (number | null)[];
  /** Most of a contributor's gain on its own text that another contributor has there too. */
  overlap: number | null;
  /** Merges measured, and those of them known from an earlier run. */
  measured: number;
  reused: number;
  seconds: number;
}

/** Share of a contributor's gain that another has on the same text, from which on text of one's own is advised. */
export const OVERLAPS = 0.3;

// What the rows of a search for the best merge say together: which are on the front of two texts, and which fit the tuned text alone. Pure.

/** Losses of a row on both texts of a part; null where it was not measured on two. */
export function twoLosses({ blocks }: BestRow, part: TextPart): [number, number] | null {
  const texts = blocks[part];
  if (texts?.length !== 2) return null;
  const [a, b] = texts.map((text) => meanLoss([text]).mean) as [number, number];
  return Number.isNaN(a + b) ? null : [a, b];
}

/**
 * The Pareto front of what has two losses: those that no other is better than on one without being worse on the other, from the
 * best on the first to the best on the second.
 */
export function paretoFront<T extends { losses: readonly [number, number] }>(all: readonly T[]): T[] {
  let least = Number.POSITIVE_INFINITY;
  return all
    .toSorted((x, y) => x.losses[0] - y.losses[0] || x.losses[1] - y.losses[1])
    .filter(({ losses: [, second] }) => {
      const isBetter = second < least;
      least = Math.min(least, second);
      return isBetter;
    });
}

/** The front of a search's rows on the choosing part, any two by what both have read; empty without two texts. */
export function frontOf(rows: readonly BestRow[]): BestRow[] {
  const known = rows.filter((row) => twoLosses(row, 'choosing'));
  /** By how much more a row loses on each text than another. */
  const more = (a: BestRow, b: BestRow) => {
    const [own, other] = alike(a.blocks.choosing!, b.blocks.choosing!);
    return own.map((text, t) => meanLoss([text]).mean - meanLoss([other[t]!]).mean) as [number, number];
  };
  const isBeaten = (own: BestRow, at: number) =>
    known.some((other, place) => {
      const [first, second] = more(own, other);
      return first >= 0 && second >= 0 && (first > 0 || second > 0 || place < at);
    });
  return known.filter((row, at) => !isBeaten(row, at)).sort((a, b) => more(a, b)[0]);
}

interface Gains {
  /** Change of the mean loss from the row that a search began at, on the text it was tuned on and on the other: negative is better. */
  tuning: Estimate;
  choosing: Estimate;
  /** What was gained on the tuned text alone. */
  overfit: number;
  /** It is outside its error. */
  isOverfit: boolean;
}

/** What a search gained on the text it was tuned on, and on text that it did not see; null for other rows. */
function gainsOf(row: BestRow, rows: readonly BestRow[]): Gains | null {
  const from = rows.find(({ id }) => id === row.from);
  const difference = (part: TextPart) => {
    const [own, other] = [row.blocks[part], from?.blocks[part]];
    return own && other ? pairedDifference(...alike(own, other)) : null;
  };
  const [tuning, choosing] = [difference('tuning'), difference('choosing')];
  if (!tuning || !choosing) return null;
  const overfit = choosing.mean - tuning.mean;
  const [a, b] = [margin(tuning), margin(choosing)];
  const isOverfit = a !== null && b !== null && overfit > Math.hypot(a, b);
  return { tuning, choosing, overfit, isOverfit };
}

/** Blocks of what both have read: rivals read more. */
function alike(a: readonly LossBlock[][], b: readonly LossBlock[][]): [LossBlock[][], LossBlock[][]] {
  const cut = (of: readonly LossBlock[][], other: readonly LossBlock[][]) =>
    of.map((text, t) => text.slice(0, other[t]?.length ?? 0));
  return [cut(a, b), cut(b, a)];
}

/** That a search fits the text it was tuned on, in words; null where it does not, or that cannot be told. */
export function overfitWords(row: BestRow, rows: readonly BestRow[], isAccuracy: boolean): string | null {
  const gains = gainsOf(row, rows);
  if (!gains?.isOverfit) return null;
  const [tuned, other] = [gains.tuning, gains.choosing].map((of) => signedChange(of, isAccuracy));
  const what = isAccuracy ? 'its error' : 'perplexity';
  return `${row.label} fits the text it was tuned on: there ${what} changed by ${tuned}, on other text by ${other}. Fewer settings, or more text, hold better.`;
}

/** Why a search for the best ended, in words; null where all was tried. */
export function endedWords({ ended, rows, left, lately }: FindBestReport): string | null {
  if (ended === 'done') return null;
  if (ended === 'converged') {
    const gain = lately && lately.gain > 0 ? 100 * Math.expm1(lately.gain) : 0;
    const brought = lately ? `: its last ${formatSeconds(lately.seconds)} brought ${gain.toFixed(1)} %` : '';
    return `The search brought nothing more${brought}`;
  }
  const tried = rows.filter(({ kind }) => kind !== 'base' && kind !== 'contributor').length;
  const missing = [
    ...(left.methods > 0 ? [formatCounted(left.methods, 'method')] : []),
    ...(left.gram > 0 ? [formatCounted(left.gram, 'Gram merge')] : []),
    ...(left.search > 0 ? ['the search'] : []),
  ];
  const before = missing.length > 0 ? `, before ${new Intl.ListFormat('en').format(missing)}` : '';
  return `The time was up after ${formatCounted(tried, 'merge')}${before}`;
}
