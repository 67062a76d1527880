/** How many engines on the processor a comparison is worth. */
import { isResidentOn } from './pair-task';
import { pairElements, type TensorPair } from './tensor-pairs';

/** Nanoseconds an element of a matrix, whose Δ stays or is made again for each product (docs/compare.md). */
const RESIDENT_COST = 12;
const AGAIN_COST = 36;
const MOST = 8;

/**
 * The number of lanes that goes through the pairs fastest: lanes share the memory for Δ, so with more of them more
 * matrices are too large to stay and have to be read for every product.
 */
export function comparingLanes(pairs: readonly TensorPair[], cores: number): number {
  const time = (lanes: number) => {
    const cost = (pair: TensorPair) =>
      pairElements(pair) * (isResidentOn(lanes, pairElements(pair)) ? RESIDENT_COST : AGAIN_COST);
    return pairs.reduce((sum, pair) => sum + cost(pair), 0) / lanes;
  };
  let best = 1;
  for (let lanes = 2; lanes <= Math.min(MOST, cores); lanes++) if (time(lanes) <= time(best)) best = lanes;
  return best;
}
