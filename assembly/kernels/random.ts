// Dropout by Philox4x32-10: shaders/select-random.wgsl, src/compute/philox.ts. Four counters at a time.

/** Low words of four products, of which `even` has lanes 0 and 1 and `odd` lanes 2 and 3. */
@inline
function low(even: v128, odd: v128): v128 {
  return v128.shuffle<u32>(even, odd, 0, 2, 4, 6);
}

@inline
function high(even: v128, odd: v128): v128 {
  return v128.shuffle<u32>(even, odd, 1, 3, 5, 7);
}

/** The sixteen random words of counters c … c + 3 to `out`. */
@inline
export function draws(c: u32, key0: u32, key1: u32, out: usize): void {
  const m0 = i32x4.splat(0xcd9e8d57);
  const m1 = i32x4.splat(0xd2511f53);
  let x = i32x4.add(i32x4.splat(c), i32x4(0, 1, 2, 3));
  let y = i32x4.splat(0);
  let z = y;
  let w = y;
  let a = key0;
  let b = key1;
  for (let round = 0; round < 10; round++) {
    const p0 = i64x2.extmul_low_i32x4_u(m0, z);
    const p1 = i64x2.extmul_high_i32x4_u(m0, z);
    const q0 = i64x2.extmul_low_i32x4_u(m1, x);
    const q1 = i64x2.extmul_high_i32x4_u(m1, x);
    x = v128.xor(v128.xor(high(p0, p1), y), i32x4.splat(a));
    y = low(p0, p1);
    z = v128.xor(v128.xor(high(q0, q1), w), i32x4.splat(b));
    w = low(q0, q1);
    a += 0x9e3779b9;
    b += 0xbb67ae85;
  }
  // lane i of the four is counter i: words 4i … 4i + 3
  const xy0 = v128.shuffle<u32>(x, y, 0, 4, 1, 5);
  const xy1 = v128.shuffle<u32>(x, y, 2, 6, 3, 7);
  const zw0 = v128.shuffle<u32>(z, w, 0, 4, 1, 5);
  const zw1 = v128.shuffle<u32>(z, w, 2, 6, 3, 7);
  v128.store(out, v128.shuffle<u64>(xy0, zw0, 0, 2));
  v128.store(out, v128.shuffle<u64>(xy0, zw0, 1, 3), 16);
  v128.store(out, v128.shuffle<u64>(xy1, zw1, 0, 2), 32);
  v128.store(out, v128.shuffle<u64>(xy1, zw1, 1, 3), 48);
}

/** Keeps the four elements at `at` whose draws are below; returns how many, with `n` < 4 only of the first n. */
@inline
function keep(at: usize, draw: usize, below: v128, n: i32): i32 {
  const stays = i32x4.lt_u(v128.load(draw), below);
  if (n >= 4) {
    v128.store(at, v128.and(v128.load(at), stays));
    return popcnt(i32x4.bitmask(stays));
  }
  const bits = i32x4.bitmask(stays);
  let kept = 0;
  for (let i = 0; i < n; i++) {
    if ((bits >> i) & 1) kept++;
    else store<u32>(at + (<usize>i << 2), 0);
  }
  return kept;
}

/**
 * Keeps an element where its random word is below `limit`, else clears it; returns how many stay.
 * @param first flat index of the first element, a multiple of four, divided by four
 * @param scratch 16 words
 */
export function selectRandom(
  values: usize,
  n: i32,
  first: u32,
  limit: u32,
  key0: u32,
  key1: u32,
  scratch: usize,
): i32 {
  const below = i32x4.splat(limit);
  let kept = 0;
  for (let e = 0; e < n; e += 16) {
    draws(first + (<u32>e >> 2), key0, key1, scratch);
    const at = values + (<usize>e << 2);
    const left = n - e;
    kept += keep(at, scratch, below, left);
    if (left > 4) kept += keep(at + 16, scratch + 16, below, left - 4);
    if (left > 8) kept += keep(at + 32, scratch + 32, below, left - 8);
    if (left > 12) kept += keep(at + 48, scratch + 48, below, left - 12);
  }
  return kept;
}
