/**
 * Spearman's correlation of how alike texts are, and nDCG of what is found, item by item: the mean of the items is the metric.
 */
import { mean } from '../linalg/numbers';
import type { TaskItem } from '../reports/tasks';
import type { Item } from './task-items';

/** Places that count in a list of answers. */
const DEPTH = 10;

/** How alike two texts are, the first the one that asks; larger is more. */
type Alike = (one: string, other: string) => number;

/** Every two texts whose likeness the items ask for. */
export function pairsOf(outputType: string, items: readonly Item[]): [one: string, other: string][] {
  const asked = items.filter(({ refused }) => refused === undefined).map(textsOf);
  if (outputType === 'similarity') return asked.map(([one, other]) => [one!, other!]);
  const corpus = [...corpusOf(asked)];
  return asked.flatMap(([query]) => corpus.map((text): [string, string] => [query!, text]));
}

const textsOf = ({ requests }: Item) => requests.map(({ context }) => context);

/** What all questions together are answered from. */
const corpusOf = (asked: readonly string[][]) => new Set(asked.flatMap(([, ...answers]) => answers));

/** The items of a task of similarity or retrieval. */
export function scoreEmbedded(outputType: string, items: readonly Item[], alike: Alike): TaskItem[] {
  const asked = items.filter(({ refused }) => refused === undefined);
  const refused = items.flatMap((item): TaskItem[] =>
    item.refused === undefined ? [] : [{ ...itemOf(item, {}), refused: item.refused }],
  );
  const values =
    outputType === 'similarity'
      ? spearman(
          pairsOf(outputType, asked).map(([one, other]) => alike(one, other)),
          asked.map(({ labels }) => labels![0]!),
        ).map((value) => ({ spearman: value }))
      : retrieved(asked, alike);
  const scored = asked.map((item, i) => itemOf(item, values[i]!));
  return [...scored, ...refused].sort((a, b) => a.docId - b.docId);
}

const itemOf = ({ docId }: Item, values: Record<string, number>): TaskItem => ({
  ...{ docId, target: null, loglikelihoods: [], isGreedy: [], values },
});

/**
 * What each pair adds to the rank correlation ρ: ρ + zₐz_b − ρ(zₐ² + z_b²)/2 for ranks in units of their deviation. The mean is ρ, and
 * its standard error that of ρ to first order (the influence function of a correlation), so that models are compared pair by pair.
 */
export function spearman(a: readonly number[], b: readonly number[]): number[] {
  const [x, y] = [standardized(ranks(a)), standardized(ranks(b))];
  const rho = mean(x.map((value, i) => value * y[i]!));
  return x.map((value, i) => rho + value * y[i]! - (rho * (value ** 2 + y[i]! ** 2)) / 2);
}

/** Ranks from 1; equal values share the mean of theirs. */
function ranks(values: readonly number[]): number[] {
  const order = values.map((_, i) => i).sort((i, j) => values[i]! - values[j]!);
  const out = new Array<number>(values.length);
  for (let begin = 0; begin < order.length; ) {
    let end = begin + 1;
    while (end < order.length && values[order[end]!] === values[order[begin]!]) end++;
    for (let i = begin; i < end; i++) out[order[i]!] = (begin + 1 + end) / 2;
    begin = end;
  }
  return out;
}

/** In units of the deviation; zeros where all are equal. */
function standardized(values: readonly number[]): number[] {
  const center = mean(values);
  const deviation = Math.sqrt(mean(values.map((value) => (value - center) ** 2)));
  return values.map((value) => (deviation === 0 ? 0 : (value - center) / deviation));
}

/** nDCG@10 of every question among the documents of all of them. */
function retrieved(items: readonly Item[], alike: Alike): { ndcg_at_10: number }[] {
  const corpus = [...corpusOf(items.map(textsOf))];
  return items.map((item) => {
    const [query, ...answers] = textsOf(item);
    const right = new Set(answers.filter((_, i) => item.labels![i] === 1));
    const found = corpus
      .map((text) => ({ isRight: right.has(text), score: alike(query!, text) }))
      .sort((one, other) => other.score - one.score);
    return {
      ndcg_at_10: gain(found.slice(0, DEPTH).map(({ isRight }) => isRight)) / gain(firsts(right.size)),
    };
  });
}

const firsts = (count: number) => Array.from({ length: Math.min(count, DEPTH) }, () => true);

/** Σ 1/log₂(1 + place) of the places that are right. */
function gain(places: readonly boolean[]): number {
  return places.reduce((sum, isRight, i) => sum + (isRight ? 1 / Math.log2(i + 2) : 0), 0);
}
