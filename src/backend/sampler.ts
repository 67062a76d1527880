/** Choosing the next token from its logits. */
import { philox } from './philox';

export interface Sampling {
  /** 0 takes the most probable token always. */
  temperature: number;
  /** Only the smallest set of most probable tokens whose probabilities reach this sum; 1 is all. */
  topP: number;
}

/** Of every segment of a row of logits its largest and Σ e^(x − largest), [segments, 2]; `begins`: their first columns. */
export interface LogitSums {
  begins: readonly number[];
  values: Float32Array;
}

/** Logits of one row, [vocab], and their sums. */
export interface Scores {
  logits: Float32Array;
  sums: LogitSums;
}

/** 53 random bits, as two words. */
export type Random = readonly [high: number, low: number];

/**
 * Random numbers depend on the seed, the sequence and the step alone, so a batch draws what each of its sequences would
 * draw by itself.
 */
export function randomOf(seed: number, sequence: number, step: number): Random {
  const words = new Uint32Array(4);
  philox(step, 0, seed >>> 0, sequence, words);
  return [words[0]!, words[1]!];
}

/** The next token. */
export function sample(scores: Scores, sampling: Sampling, [high, low]: Random): number {
  const { temperature, topP } = sampling;
  if (temperature === 0) return scores.logits.indexOf(topOf(scores.sums));
  const u = (high * 2 ** 21 + (low >>> 11)) / 2 ** 53;
  return temperature === 1 && topP === 1 ? drawOfAll(scores, u) : draw(scores, sampling, u);
}

function topOf({ begins, values }: LogitSums): number {
  let top = Number.NEGATIVE_INFINITY;
  for (let s = 0; s < begins.length; s++) top = Math.max(top, values[2 * s]!);
  return top;
}

/** Probability of a token: e^(x − largest) / Σ e^(x − largest), the sums of all segments taken to one largest. */
export function probabilityOf({ logits, sums }: Scores, id: number): number {
  const { begins, values } = sums;
  const top = topOf(sums);
  let total = 0;
  for (let s = 0; s < begins.length; s++) total += values[2 * s + 1]! * Math.exp(values[2 * s]! - top);
  return Math.exp(logits[id]! - top) / total;
}

/** By the sums of segments, so that exponentials of one segment are all that is computed here. */
function drawOfAll({ logits, sums }: Scores, u: number): number {
  const { begins, values } = sums;
  const top = topOf(sums);
  const weightOf = (s: number) => values[2 * s + 1]! * Math.exp(values[2 * s]! - top);
  let left = 0;
  let last = 0;
  for (let s = 0; s < begins.length; s++) {
    left += weightOf(s);
    if (weightOf(s) > 0) last = s;
  }
  left *= u;
  let segment = 0;
  while (segment < last && left >= weightOf(segment)) left -= weightOf(segment++);
  const end = begins[segment + 1] ?? logits.length;
  let drawn = begins[segment]!;
  for (let i = drawn; i < end; i++) {
    const weight = Math.exp(logits[i]! - top);
    if (weight > 0) drawn = i;
    if (left < weight) break;
    left -= weight;
  }
  return drawn;
}

function draw({ logits, sums }: Scores, { temperature, topP }: Sampling, u: number): number {
  const top = topOf(sums);
  const weights = new Float64Array(logits.length);
  let total = 0;
  for (let i = 0; i < weights.length; i++) {
    weights[i] = Math.exp((logits[i]! - top) / temperature);
    total += weights[i]!;
  }
  // those below together weigh less than what topP leaves out, so the wanted set lies above
  const least = ((1 - topP) * total) / weights.length;
  const candidates: number[] = [];
  for (let i = 0; i < weights.length; i++) if (weights[i]! > 0 && weights[i]! >= least) candidates.push(i);
  if (topP === 1) return pick(candidates, weights, u * total);
  candidates.sort((a, b) => weights[b]! - weights[a]! || a - b);
  let mass = 0;
  let count = 0;
  while (count < candidates.length && mass < topP * total) mass += weights[candidates[count++]!]!;
  return pick(candidates.slice(0, Math.max(1, count)), weights, u * mass);
}

/** The candidate at which the running sum of weights passes `at`. */
function pick(candidates: readonly number[], weights: Float64Array, at: number): number {
  let sum = 0;
  for (const i of candidates) {
    sum += weights[i]!;
    if (at < sum) return i;
  }
  return candidates.at(-1)!;
}
