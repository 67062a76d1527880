/** What the rows of a search for the best merge say together: which are on the front of two texts, and which fit the tuned text alone. Pure. */
import { signedChange } from './conclusion';
import type { BestRow, TextPart } from './find-best';
import { type Estimate, type LossBlock, margin, meanLoss, pairedDifference } from './paired-error';

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

/** The front of a search's rows on the choosing part; empty without two texts. */
export function frontOf(rows: readonly BestRow[]): BestRow[] {
  const known = rows.flatMap((row) => {
    const losses = twoLosses(row, 'choosing');
    return losses ? [{ row, losses }] : [];
  });
  return paretoFront(known).map(({ row }) => row);
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
export function gainsOf(row: BestRow, rows: readonly BestRow[]): Gains | null {
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
