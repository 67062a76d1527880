/** PyTorch's random permutations, as far as adapters need them: which places of a matrix they train. */

import { mersenneTwister } from '../../linalg/mersenne-twister';

/** From here on PyTorch draws 64-bit numbers (ATen/native/TensorFactories.cpp, randperm_cpu). */
export const MOST_PLACES = Math.floor((2 ** 32 - 1) / 20);

/**
 * The first `count` entries of `torch.randperm(n, generator=torch.Generator().manual_seed(seed))`: a Fisher–Yates
 * shuffle over MT19937, of which only the moved entries are stored.
 * @param n fewer than {@link MOST_PLACES}
 */
export function firstOfPermutation(n: number, count: number, seed: number): number[] {
  const random = seeded(seed);
  const moved = new Map<number, number>();
  const at = (i: number) => moved.get(i) ?? i;
  const out: number[] = [];
  for (let i = 0; i < Math.min(count, n); i++) {
    const j = i < n - 1 ? i + (random() % (n - i)) : i;
    const value = at(j);
    moved.set(j, at(i));
    out.push(value);
  }
  return out;
}

/** MT19937 as PyTorch seeds it. */
function seeded(seed: number): () => number {
  const state = new Uint32Array(624);
  state[0] = seed;
  for (let i = 1; i < 624; i++) {
    const before = state[i - 1]! ^ (state[i - 1]! >>> 30);
    state[i] = Math.imul(before, 1812433253) + i;
  }
  return mersenneTwister(state);
}
