/** How many engines on the processor a comparison is worth. */
import { isResidentOn } from './pair-task';
import { pairElements, type TensorPair } from './tensor-pairs';

/** Nanoseconds an element of a matrix, whose Δ stays or is made again for each product (docs/compare.md). */
const RESIDENT_COST = 12;
const AGAIN_COST = 36;
const MOST = 8;

/**
 * The number of threads that goes through the pairs fastest: threads share the memory for Δ, so with more of them more
 * matrices are too large to stay and have to be read for every product.
 */
export function comparingThreads(pairs: readonly TensorPair[], cores: number): number {
  const time = (threads: number) => {
    const cost = (pair: TensorPair) =>
      pairElements(pair) * (isResidentOn(threads, pairElements(pair)) ? RESIDENT_COST : AGAIN_COST);
    return pairs.reduce((sum, pair) => sum + cost(pair), 0) / threads;
  };
  let best = 1;
  for (let threads = 2; threads <= Math.min(MOST, cores); threads++)
    if (time(threads) <= time(best)) best = threads;
  return best;
}
