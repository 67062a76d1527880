/** Choosing the next token from its logits. */
import { philox } from '../backend/philox';

export interface Sampling {
  /** 0 takes the most probable token always. */
  temperature: number;
  /** Only the smallest set of most probable tokens whose probabilities reach this sum; 1 is all. */
  topP: number;
  seed: number;
}

export const GREEDY: Sampling = { temperature: 0, topP: 1, seed: 0 };

/**
 * The next token. The random number depends on the seed, the sequence and the step alone, so a batch draws what each of
 * its sequences would draw by itself.
 */
export function sample(logits: Float32Array, sampling: Sampling, sequence: number, step: number): number {
  return sampling.temperature > 0
    ? draw(logits, sampling, uniform(sampling.seed, sequence, step))
    : argmax(logits);
}

/** Index of the largest value, the lowest where several are equal. */
export function argmax(values: Float32Array): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i;
  return best;
}

/** A number in [0, 1) with 53 random bits. */
function uniform(seed: number, sequence: number, step: number): number {
  const words = new Uint32Array(4);
  philox(step, 0, seed >>> 0, sequence, words);
  return (words[0]! * 2 ** 21 + (words[1]! >>> 11)) / 2 ** 53;
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
  if (topP >= 1) return pick(candidates, weights, u * total);
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
