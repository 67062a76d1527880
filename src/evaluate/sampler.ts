/** Choosing the next token from its logits. */
import { philox } from '../backend/philox';
import type { LogitSums } from '../forward/head';
import { argmax } from '../linalg/numbers';

export interface Sampling {
  /** 0 takes the most probable token always. */
  temperature: number;
  /** Only the smallest set of most probable tokens whose probabilities reach this sum; 1 is all. */
  topP: number;
  seed: number;
}

export const GREEDY: Sampling = { temperature: 0, topP: 1, seed: 0 };

/** Logits of one row, [vocab], and their sums. */
export interface Scores {
  logits: Float32Array;
  sums: LogitSums;
}

/**
 * The next token. The random number depends on the seed, the sequence and the step alone, so a batch draws what each of
 * its sequences would draw by itself.
 */
export function sample(scores: Scores, sampling: Sampling, sequence: number, step: number): number {
  const { temperature, topP, seed } = sampling;
  if (temperature === 0) return argmax(scores.logits);
  const u = uniform(seed, sequence, step);
  return temperature === 1 && topP === 1 ? drawOfAll(scores, u) : draw(scores.logits, sampling, u);
}

/** Index of the largest value, the lowest where several are equal. */
/** A number in [0, 1) with 53 random bits. */
function uniform(seed: number, sequence: number, step: number): number {
  const words = new Uint32Array(4);
  philox(step, 0, seed >>> 0, sequence, words);
  return (words[0]! * 2 ** 21 + (words[1]! >>> 11)) / 2 ** 53;
}

/** By the sums of segments, so that exponentials of one segment are all that is computed here. */
function drawOfAll({ logits, sums: { begins, values } }: Scores, u: number): number {
  let top = Number.NEGATIVE_INFINITY;
  for (let s = 0; s < begins.length; s++) top = Math.max(top, values[2 * s]!);
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

function draw(logits: Float32Array, { temperature, topP }: Sampling, u: number): number {
  const top = logits[argmax(logits)]!;
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
