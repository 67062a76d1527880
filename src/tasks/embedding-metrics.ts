/** Spearman's correlation of similarities, and nDCG of what is found, item by item: the mean of the items is the metric. */
import { mean } from '../linalg/numbers';
import type { TaskItem } from '../reports/tasks';
import type { Item } from './task-items';

type Vector = Float64Array;

/** Places that count in a list of answers. */
const DEPTH = 10;

/**
 * The items of a task of similarity or retrieval.
 * @param vectorOf the embedding of a text by its place in its item
 */
export function scoreEmbedded(
  outputType: string,
  items: readonly Item[],
  similarity: (a: Vector, b: Vector) => number,
  vectorOf: (text: string, place: number) => Vector,
): TaskItem[] {
  const asked = items.filter(({ refused }) => refused === undefined);
  const refused = items.flatMap((item): TaskItem[] =>
    item.refused === undefined ? [] : [{ ...itemOf(item, {}), refused: item.refused }],
  );
  const vectors = ({ requests }: Item) => requests.map(({ context }, i) => vectorOf(context, i));
  const values =
    outputType === 'similarity'
      ? spearman(
          asked.map((item) => similarity(...(vectors(item) as [Vector, Vector]))),
          asked.map(({ labels }) => labels![0]!),
        ).map((value) => ({ spearman: value }))
      : retrieved(asked, similarity, vectors);
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
function retrieved(
  items: readonly Item[],
  similarity: (a: Vector, b: Vector) => number,
  vectors: (item: Item) => Vector[],
): { ndcg_at_10: number }[] {
  const corpus = new Map<string, Vector>();
  const embedded = items.map(vectors);
  for (const [q, { requests }] of items.entries()) {
    for (const [i, { context }] of requests.entries()) if (i > 0) corpus.set(context, embedded[q]![i]!);
  }
  return items.map(({ requests, labels }, q) => {
    const right = new Set(requests.slice(1).flatMap(({ context }, i) => (labels![i] === 1 ? [context] : [])));
    const found = [...corpus]
      .map(([text, vector]) => ({ isRight: right.has(text), score: similarity(embedded[q]![0]!, vector) }))
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
