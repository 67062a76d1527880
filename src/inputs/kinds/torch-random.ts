/** PyTorch's random permutations, as far as adapters need them: which places of a matrix they train. */

/** From here on PyTorch draws 64-bit numbers (ATen/native/TensorFactories.cpp, randperm_cpu). */
export const MOST_PLACES = Math.floor((2 ** 32 - 1) / 20);

/**
 * The first `count` entries of `torch.randperm(n, generator=torch.Generator().manual_seed(seed))`: a Fisher–Yates
 * shuffle over MT19937, of which only what was moved is kept.
 * @param n fewer than {@link MOST_PLACES}
 */
export function firstOfPermutation(n: number, count: number, seed: number): number[] {
  const random = mersenneTwister(seed);
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

/** MT19937 (Matsumoto and Nishimura 1998), 32 bits at a time. */
function mersenneTwister(seed: number): () => number {
  const state = new Uint32Array(624);
  state[0] = seed;
  for (let i = 1; i < 624; i++) {
    const before = state[i - 1]! ^ (state[i - 1]! >>> 30);
    state[i] = Math.imul(before, 1812433253) + i;
  }
  let next = 624;
  return () => {
    if (next === 624) {
      for (let i = 0; i < 624; i++) {
        const y = (state[i]! & 0x80000000) | (state[(i + 1) % 624]! & 0x7fffffff);
        state[i] = state[(i + 397) % 624]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      next = 0;
    }
    let y = state[next++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
}
