/**
 * MT19937 (Matsumoto and Nishimura 1998), 32 bits at a time.
 * @param state 624 words, which the seed has filled; they are used up
 */
export function mersenneTwister(state: Uint32Array): () => number {
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
