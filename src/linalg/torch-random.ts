/** PyTorch's random numbers on the processor, as far as adapters are drawn from a seed. */

/** MT19937 as `torch.Generator().manual_seed(seed)` has it. */
export function torchGenerator(seed: number): () => number {
  const state = new Uint32Array(624);
  state[0] = seed;
  for (let i = 1; i < 624; i++) {
    const before = state[i - 1]! ^ (state[i - 1]! >>> 30);
    state[i] = Math.imul(before, 1812433253) + i;
  }
  return mersenneTwister(state);
}

/**
 * `torch.randn(count, generator=…)` in f32 (ATen/native/cpu/DistributionTemplates.h, normal_fill): Box–Muller over sixteen
 * uniform numbers at a time, the last sixteen drawn again where the count is no multiple; below sixteen one pair after the
 * other, in f64 (ATen/core/DistributionsHelper.h).
 */
export function torchNormals(seed: number, count: number): Float64Array {
  const random = torchGenerator(seed);
  const out = new Float64Array(count);
  if (count < 16) {
    const uniform = () => {
      const high = random() % 2 ** 21;
      return (high * 2 ** 32 + random()) / 2 ** 53;
    };
    for (let i = 0; i < count; i += 2) {
      const angle = 2 * Math.PI * uniform();
      const radius = Math.sqrt(-2 * Math.log1p(-uniform()));
      out[i] = radius * Math.cos(angle);
      if (i + 1 < count) out[i + 1] = radius * Math.sin(angle);
    }
    return out;
  }
  const uniform = () => (random() % 2 ** 24) / 2 ** 24;
  const sixteen = (at: number) => {
    for (let i = at; i < at + 8; i++) {
      const radius = Math.sqrt(-2 * Math.log(1 - out[i]!));
      const angle = 2 * Math.PI * out[i + 8]!;
      out[i] = radius * Math.cos(angle);
      out[i + 8] = radius * Math.sin(angle);
    }
  };
  for (let i = 0; i < count; i++) out[i] = uniform();
  for (let at = 0; at + 16 <= count; at += 16) sixteen(at);
  if (count % 16 !== 0) {
    for (let i = count - 16; i < count; i++) out[i] = uniform();
    sixteen(count - 16);
  }
  return out;
}

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
