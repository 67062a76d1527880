/**
 * Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): four random words from a counter
 * and a key. The only source of randomness; in WGSL it is shaders/lib/philox.wgsl.
 */

/** High 32 bits of the 64-bit product of two u32. */
function mulHigh(a: number, b: number): number {
  const al = a & 0xffff;
  const ah = a >>> 16;
  const bl = b & 0xffff;
  const bh = b >>> 16;
  const mid = ah * bl + ((al * bl) >>> 16);
  const mid2 = al * bh + (mid & 0xffff);
  return (ah * bh + (mid >>> 16) + (mid2 >>> 16)) >>> 0;
}

/** Writes the four words for counter (c0, c1, 0, 0) and key (k0, k1) into `out`. */
export function philox(c0: number, c1: number, k0: number, k1: number, out: Uint32Array): void {
  let x = c0 >>> 0;
  let y = c1 >>> 0;
  let z = 0;
  let w = 0;
  let a = k0 >>> 0;
  let b = k1 >>> 0;
  for (let round = 0; round < 10; round++) {
    const nx = (mulHigh(0xcd9e8d57, z) ^ y ^ a) >>> 0;
    const ny = Math.imul(0xcd9e8d57, z) >>> 0;
    const nz = (mulHigh(0xd2511f53, x) ^ w ^ b) >>> 0;
    const nw = Math.imul(0xd2511f53, x) >>> 0;
    x = nx;
    y = ny;
    z = nz;
    w = nw;
    a = (a + 0x9e3779b9) >>> 0;
    b = (b + 0xbb67ae85) >>> 0;
  }
  out[0] = x;
  out[1] = y;
  out[2] = z;
  out[3] = w;
}

/** Standard normal numbers from number `first` on, by Box and Muller; number e takes half of the Philox words of counter ⌊e/2⌋. */
export function normals(count: number, [k0, k1]: readonly [number, number], first = 0): Float64Array {
  const out = new Float64Array(count);
  const words = new Uint32Array(4);
  for (let pair = first - (first % 2); pair < first + count; pair += 2) {
    philox(pair / 2, 0, k0, k1, words);
    const radius = Math.sqrt(-2 * Math.log((words[0]! + 1) / 2 ** 32));
    const angle = (2 * Math.PI * words[1]!) / 2 ** 32;
    if (pair >= first) out[pair - first] = radius * Math.cos(angle);
    if (pair + 1 < first + count) out[pair + 1 - first] = radius * Math.sin(angle);
  }
  return out;
}

/** Numbers in [0, 1) by ascending index, four of one Philox counter. */
export function chances([k0, k1]: readonly [number, number]): (i: number) => number {
  const words = new Uint32Array(4);
  return (i) => {
    if (i % 4 === 0) philox(i / 4, 0, k0, k1, words);
    return words[i % 4]! / 2 ** 32;
  };
}

/**
 * The key of a random mask: FNV-1a (64 bit) over "seed NUL model NUL tensor" in UTF-8. Philox mixes any key fully, so
 * a plain hash is enough to separate different (seed, model, tensor).
 */
export function maskKey(seed: number, model: string, tensor: string): [number, number] {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(`${seed}\0${model}\0${tensor}`)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return [Number(hash & 0xffffffffn), Number(hash >> 32n)];
}
