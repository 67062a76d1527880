/** What can be said of a merge beside other merges and the models it is made of, outside the error of the numbers. Pure. */
import {
  type Estimate,
  margin,
  meanLoss,
  pairedDifference,
  type TextBlocks,
  TOO_SHORT,
  verdict,
} from './paired-error';

/** One that was measured. */
export interface Contender {
  label: string;
  kind: 'merge' | 'base' | 'contributor';
  texts: TextBlocks;
}

/** What a merge is beside. */
export interface Field<T extends Contender> extends Leading<T> {
  /** All that were measured on the same texts. */
  all: readonly T[];
  isAccuracy: boolean;
  /** `on 4 × 1 500 characters`. */
  scope: string;
  /** Merges that were compared on the choosing part alone. */
  left: number;
  /** The least difference that is seen in the numbers shown, in nats or of an accuracy; smaller ones are none. */
  least?: number;
}

export interface Conclusion<T> {
  lead: string;
  rest: string;
  /** Those that more text might tell apart from it. */
  open: readonly T[];
}

export interface Leading<T> {
  /** Null without a merge. */
  leader: T | null;
  /** It was chosen on another part of the text, not by these numbers. */
  isChosen: boolean;
  /**
   * That are made at once: of a leader that was chosen elsewhere one with each of the others; of one that leads by these very
   * numbers as many as there are pairs with a merge, for any of them might have led.
   */
  comparisons: number;
}

/**
 * Which merge leads: the one that was chosen on another part of the text, unless one is better beyond the error; without a
 * choice the one with the least loss.
 *
 * @param all measured on the same texts
 */
export function leading<T extends Contender>(all: readonly T[], chosen: T | undefined): Leading<T> {
  const merges = all.filter(({ kind }) => kind === 'merge');
  const others = Math.max(1, all.length - 1);
  const better = merges.filter(
    ({ texts }) => !chosen || verdict(pairedDifference(texts, chosen.texts), others) === 'lower',
  );
  const least = better.reduce<T | null>((a, b) => (a && loss(a) <= loss(b) ? a : b), null);
  if (!least && chosen) return { leader: chosen, isChosen: true, comparisons: others };
  const pairs = (merges.length * (merges.length - 1)) / 2 + merges.length * (all.length - merges.length);
  return { leader: least, isChosen: false, comparisons: Math.max(1, pairs) };
}

const loss = ({ texts }: Contender) => meanLoss(texts).mean;

/** @param of the merge that is spoken of: the leader, or another */
export function conclusion<T extends Contender>(of: T, field: Field<T>): Conclusion<T> {
  const { left } = field;
  const { rest, ...said } = standingOf(of, field);
  const more = left === 1 ? ' One more was' : ` ${left} more were`;
  return { ...said, rest: left === 0 ? rest : `${rest}${more} compared on the choosing part alone.` };
}

function standingOf<T extends Contender>(of: T, field: Field<T>): Conclusion<T> {
  const { all, leader, isChosen, comparisons, isAccuracy, scope, least = 0 } = field;
  if (!isAccuracy && margin(meanLoss(of.texts)) === null) {
    return { lead: of.label, rest: ` is measured, ${scope}. ${TOO_SHORT}`, open: [] };
  }
  const beside = all
    .flatMap((own) => {
      const apart = own === of ? null : pairedDifference(of.texts, own.texts);
      if (!apart) return [];
      const half = margin(apart, comparisons) ?? Number.POSITIVE_INFINITY;
      const isEqual = Math.max(half, Math.abs(apart.mean)) < least;
      return [{ own, apart, is: isEqual ? ('equal' as const) : verdict(apart, comparisons) }];
    })
    .sort((a, b) => b.apart.mean - a.apart.mean);
  const change = (apart: Estimate) => changeWords(apart, comparisons, isAccuracy);
  const merges = beside.filter(({ own }) => own.kind === 'merge');
  const models = beside.filter(({ own }) => own.kind !== 'merge');
  const count = merges.length + 1;
  const isLevel = ({ is }: { is: string }) => is === 'alike' || is === 'equal';
  const same = merges.filter(isLevel);
  const tied = same.map(({ own }) => own);
  const areEqual = same.every(({ is }) => is === 'equal');
  const level = models.filter(isLevel).map(({ own }) => own);
  const open = [...models, ...merges].filter(({ is }) => is === 'alike').map(({ own }) => own);
  const ahead = models.find(({ is }) => is === 'higher');
  const base = models.find(({ own, is }) => own.kind === 'base' && is === 'lower');
  const contributors = models.filter(({ own }) => own.kind === 'contributor');
  const beatsEach = contributors.length > 0 && contributors.every(({ is }) => is === 'lower');
  const gains = [
    ...(base ? [`better than the base by ${change(base.apart)}`] : []),
    ...(beatsEach ? [`${base ? '' : 'better '}than each contributor alone`] : []),
  ];
  const gain = gains.length > 0 ? `is ${gains.join(' and ')}` : '';
  const even = level.length > 0 ? `cannot be told apart from ${anyOf(level)}` : '';
  const behind = ahead ? `is worse than ${nameOf(ahead.own)} by ${change(ahead.apart)}` : '';
  const rests = [behind, even].filter(Boolean).join(' and ');
  const standing = [gain, rests].filter(Boolean).join(', but ');
  const first = merges.find(({ own }) => own === leader);
  if (first) {
    const named = `${first.own.label}, ${isChosen ? 'chosen among' : 'one of'} ${count} merges in Measure`;
    const so =
      first.is === 'higher'
        ? `${named}, is better than it by ${change(first.apart)}.`
        : `It ${first.is === 'equal' ? 'is equal here to' : 'cannot be told apart from'} ${named}.`;
    return { lead: of.label, rest: ` ${standing || 'is measured'}, ${scope}. ${so}`, open };
  }
  if (count === 1) {
    return { lead: of.label, rest: ` ${standing || 'is the only merge that was measured'}, ${scope}.`, open };
  }
  const names = tied.slice(0, 3).map(({ label }) => label);
  const more = `${names.join(', ')}${tied.length > 3 ? ', …' : ''}`;
  const [one, are] = tied.length === 1 ? ['one', 'is'] : [tied.length, 'are'];
  const ties = `${one} ${areEqual ? `${are} equal to it here` : 'cannot be told apart from it'} (${more})`;
  const [stands, to] = areEqual ? ['is equal here', 'to'] : ['cannot be told apart', 'from'];
  if (ahead) {
    const also = [gain, even].filter(Boolean).join(', but ');
    const place = !isChosen ? ' comes nearest,' : ', which was chosen, is';
    const nearest = `: ${of.label}${place} worse by ${change(ahead.apart)}${tied.length > 0 ? `, and ${ties}` : ''}, ${scope}.`;
    const lead = `None of ${count} merges is better than ${nameOf(ahead.own)}`;
    return { lead, rest: `${nearest}${also && ` It ${also}.`}`, open };
  }
  const so = standing && ` It ${standing}.`;
  const [lead, rest] =
    tied.length === 0
      ? [`${of.label} is the best of ${count} merges`, '']
      : isChosen
        ? [`${of.label} was chosen among ${count} merges`, `: ${ties}`]
        : [`${of.label} ${stands}`, ` ${to} ${tied.length} of ${count - 1} other merges (${more})`];
  return { lead, rest: `${rest}, ${scope}.${so}`, open };
}

const nameOf = ({ kind, label }: Contender) =>
  kind === 'base' ? 'the base' : kind === 'contributor' ? `${label} alone` : label;

/** `the base, kitchen or workshop alone`. */
function anyOf(models: readonly Contender[]): string {
  const alone = models.filter(({ kind }) => kind === 'contributor').map(({ label }) => label);
  const names = [...(models.length > alone.length ? ['the base'] : []), ...alone];
  const last = names.pop()!;
  return `${names.length > 0 ? `${names.join(', ')} or ` : ''}${last}${alone.length > 0 ? ' alone' : ''}`;
}

/** The same with its sign where it is outside its error; else the error alone: `± 0.8 %`. */
export function signedChange(against: Estimate, isAccuracy = false): string {
  const words = changeWords(against, 1, isAccuracy);
  const is = verdict(against);
  return is === 'alike' ? words.replace(/^[^±]*/, '') : `${is === 'lower' ? '\u2212' : '+'}${words}`;
}

/** `7.0 ± 0.8 %` of a perplexity, `3.0 ± 2.1 points` of an accuracy. */
function changeWords(against: Estimate, comparisons: number, isAccuracy: boolean): string {
  const ratio = Math.exp(against.mean);
  const size = 100 * Math.abs(isAccuracy ? against.mean : ratio - 1);
  const half = 100 * (margin(against, comparisons) ?? 0) * (isAccuracy ? 1 : ratio);
  const digits = half >= 1 ? 0 : half >= 0.1 ? 1 : 2;
  return `${size.toFixed(digits)}\u00a0±\u00a0${half.toFixed(digits)}\u00a0${isAccuracy ? 'points' : '%'}`;
}
