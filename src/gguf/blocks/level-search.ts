/**
 * Scales and levels of a few weights by least squares, bit for bit as ggml's reference finds them
 * (ggml/src/ggml-quants.c: make_qx_quants, make_qkx2_quants and make_qkx3_quants, make_qp_quants). Every operation is
 * rounded to f32, in the reference's order.
 */
const f = Math.fround;
const TENTH = f(0.1);
/** Smaller groups count as zero. */
const EPSILON = f(1e-15);
/** Adding and taking away 1.5·2²³ rounds to an integer, half to even. */
const ROUND = 12_582_912;

export function nearest(value: number): number {
  return f(f(value) + ROUND) - ROUND;
}

/**
 * Levels −n … n−1 around zero: x ≈ scale · level, the error weighted by `weights`, else by x².
 * @param out gets level + n of every element from `outAt` on
 * @returns the scale
 */
export function searchScale(
  x: Float32Array,
  at: number,
  count: number,
  n: number,
  weights: Float32Array | undefined,
  weightsAt: number,
  out: Uint8Array,
  outAt: number,
): number {
  let most = 0;
  let extreme = 0;
  for (let i = 0; i < count; i++) {
    const size = Math.abs(x[at + i]!);
    if (size > most) {
      most = size;
      extreme = x[at + i]!;
    }
  }
  if (most < EPSILON) {
    out.fill(0, outAt, outAt + count);
    return 0;
  }
  let scale = 0;
  let best = 0;
  for (let trial = 0; trial < 19; trial++) {
    // the plain one first, then a tenth of a level apart on both sides
    const shift = trial === 0 ? 0 : trial <= 9 ? trial - 10 : trial - 9;
    const inverse = f(-f(n + f(TENTH * shift)) / extreme);
    let xl = 0;
    let ll = 0;
    for (let i = 0; i < count; i++) {
      const value = x[at + i]!;
      const rounded = nearest(inverse * value);
      const level = rounded < -n ? -n : Math.min(rounded, n - 1);
      const weight = weights ? weights[weightsAt + i]! : f(value * value);
      xl = f(xl + f(f(weight * value) * level));
      ll = f(ll + f(f(weight * level) * level));
    }
    if (trial === 0) scale = ll === 0 ? 0 : f(xl / ll);
    else if (!(ll > 0 && f(xl * xl) > f(best * ll))) continue;
    else scale = f(xl / ll);
    best = f(scale * xl);
    for (let i = 0; i < count; i++) {
      out[outAt + i] = n + Math.max(-n, Math.min(n - 1, nearest(inverse * x[at + i]!)));
    }
  }
  return scale;
}

/** How {@link searchScaleAndMin} tries: scales of (n + from + step · i) levels, i ≤ steps. */
export interface Trials {
  from: number;
  step: number;
  steps: number;
}

const levels = new Int32Array(32);
/** Elements less the minimum. */
const above = new Float32Array(32);

function aboveMinimum(x: Float32Array, at: number, min: number): void {
  for (let i = 0; i < 32; i++) above[i] = x[at + i]! - min;
}

/** The nearest of 0 … n. */
function clamped(value: number, n: number): number {
  const level = f(f(value) + ROUND) - ROUND;
  return level < 0 ? 0 : Math.min(level, n);
}

/**
 * Levels 0 … n of 32 elements above a minimum that is at most 0: x ≈ scale · level + min.
 * @param out gets the levels, from `outAt` on
 * @param found gets the scale and −min
 */
export function searchScaleAndMin(
  x: Float32Array,
  at: number,
  n: number,
  weights: Float32Array,
  { from, step, steps }: Trials,
  out: Uint8Array,
  outAt: number,
  found: { scale: number; min: number },
): void {
  let min = x[at]!;
  let max = min;
  let sumW = 0;
  let sumX = 0;
  for (let i = 0; i < 32; i++) {
    const value = x[at + i]!;
    if (value < min) min = value;
    if (value > max) max = value;
    sumW = f(sumW + weights[i]!);
    sumX = f(sumX + f(weights[i]! * value));
  }
  if (min > 0) min = 0;
  if (max <= min) {
    out.fill(0, outAt, outAt + 32);
    found.scale = 0;
    found.min = -min;
    return;
  }
  const first = f(n / f(max - min));
  let scale = f(1 / first);
  let best = 0;
  aboveMinimum(x, at, min);
  for (let i = 0; i < 32; i++) {
    const level = clamped(first * above[i]!, n);
    out[outAt + i] = level;
    const off = f(f(f(scale * level) + min) - x[at + i]!);
    best = f(best + f(weights[i]! * f(off * off)));
  }
  for (let trial = 0; trial <= steps; trial++) {
    // as the reference has it, from the best minimum so far
    const inverse = f(f(f(f(from) + f(f(step) * trial)) + n) / f(max - min));
    let sumL = 0;
    let sumLL = 0;
    let sumXL = 0;
    for (let i = 0; i < 32; i++) {
      const level = clamped(inverse * above[i]!, n);
      levels[i] = level;
      const weighted = f(weights[i]! * level);
      sumL = f(sumL + weighted);
      sumLL = f(sumLL + f(weighted * level));
      sumXL = f(sumXL + f(weighted * x[at + i]!));
    }
    const determinant = f(f(sumW * sumLL) - f(sumL * sumL));
    if (!(determinant > 0)) continue;
    let thisScale = f(f(f(sumW * sumXL) - f(sumX * sumL)) / determinant);
    let thisMin = f(f(f(sumLL * sumX) - f(sumL * sumXL)) / determinant);
    if (thisMin > 0) {
      thisMin = 0;
      thisScale = f(sumXL / sumLL);
    }
    let error = 0;
    for (let i = 0; i < 32; i++) {
      const off = f(f(f(thisScale * levels[i]!) + thisMin) - x[at + i]!);
      error = f(error + f(weights[i]! * f(off * off)));
    }
    if (!(error < best)) continue;
    for (let i = 0; i < 32; i++) out[outAt + i] = levels[i]!;
    best = error;
    scale = thisScale;
    if (thisMin !== min) aboveMinimum(x, at, thisMin);
    min = thisMin;
  }
  found.scale = scale;
  found.min = -min;
}

/** Levels 0 … 63 of 8 values that are not negative: x ≈ scale · level. @returns the scale */
export function searchPositive(x: Float32Array, out: Uint8Array, weights: Float32Array): number {
  const count = 8;
  const n = 63;
  let max = 0;
  for (let i = 0; i < count; i++) max = Math.max(max, x[i]!);
  if (max < EPSILON) {
    out.fill(0, 0, count);
    return 0;
  }
  let inverse = f(n / max);
  let best = Infinity;
  for (let trial = 0; trial < 9; trial++) {
    const shift = trial === 0 ? 0 : trial <= 4 ? trial - 5 : trial - 4;
    const tried = f(f(f(TENTH * shift) + n) / max);
    const scale = f(1 / tried);
    let error = 0;
    for (let i = 0; i < count; i++) {
      const off = f(x[i]! - f(scale * Math.min(n, nearest(tried * x[i]!))));
      error = f(error + f(f(weights[i]! * off) * off));
    }
    if (!(error < best)) continue;
    best = error;
    inverse = tried;
  }
  let xl = 0;
  let ll = 0;
  for (let i = 0; i < count; i++) {
    const level = Math.min(n, nearest(inverse * x[i]!));
    out[i] = level;
    xl = f(xl + f(f(weights[i]! * x[i]!) * level));
    ll = f(ll + f(f(weights[i]! * level) * level));
  }
  for (let round = 0; round < 5; round++) {
    let changed = false;
    for (let i = 0; i < count; i++) {
      const weighted = f(weights[i]! * x[i]!);
      let otherXl = f(xl - f(weighted * out[i]!));
      let otherLl = f(ll - f(f(weights[i]! * out[i]!) * out[i]!));
      if (!(otherXl > 0 && otherLl > 0)) continue;
      const level = Math.min(n, nearest(f(x[i]! * otherLl) / otherXl));
      if (level === out[i]) continue;
      otherXl = f(otherXl + f(weighted * level));
      otherLl = f(otherLl + f(f(weights[i]! * level) * level));
      if (!(f(f(otherXl * otherXl) * ll) > f(f(xl * xl) * otherLl))) continue;
      out[i] = level;
      xl = otherXl;
      ll = otherLl;
      changed = true;
    }
    if (!changed) break;
  }
  return ll > 0 ? f(xl / ll) : 0;
}
