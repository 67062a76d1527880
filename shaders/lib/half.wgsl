// bf16 and f16 by integer code only: exact for every value, subnormals, infinities and NaN included.
// Dtype codes: 0 = f32, 1 = f16, 2 = bf16.

fn is_finite(bits: u32) -> bool {
  return (bits & 0x7f800000u) != 0x7f800000u;
}

// f16 bits (low 16) → f32 bits.
fn widen_f16(h: u32) -> u32 {
  let sign = (h & 0x8000u) << 16u;
  let exponent = (h >> 10u) & 0x1fu;
  let mantissa = h & 0x3ffu;
  if (exponent == 0x1fu) { return sign | 0x7f800000u | (mantissa << 13u); }
  if (exponent != 0u) { return sign | ((exponent + 112u) << 23u) | (mantissa << 13u); }
  if (mantissa == 0u) { return sign; }
  let shift = countLeadingZeros(mantissa) - 21u; // brings the leading one to bit 10
  return sign | ((113u - shift) << 23u) | (((mantissa << shift) & 0x3ffu) << 13u);
}

// f32 bits → bf16 bits, to nearest even; NaN stays NaN.
fn narrow_bf16(x: u32) -> u32 {
  if ((x & 0x7fffffffu) > 0x7f800000u) { return (x >> 16u) | 0x40u; }
  return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
}

// f32 bits → f16 bits, to nearest even; NaN stays NaN, overflow becomes infinity.
fn narrow_f16(x: u32) -> u32 {
  let sign = (x >> 16u) & 0x8000u;
  let a = x & 0x7fffffffu;
  if (a > 0x7f800000u) { return sign | 0x7e00u | ((a >> 13u) & 0x1ffu); }
  if (a >= 0x477ff000u) { return sign | 0x7c00u; } // ≥ 65520 rounds to infinity
  if (a >= 0x38800000u) { // normal
    let r = a - 0x38000000u;
    return sign | ((r + 0xfffu + ((r >> 13u) & 1u)) >> 13u);
  }
  let exponent = a >> 23u;
  if (exponent < 102u) { return sign; } // below 2^-25: zero
  let mantissa = (a & 0x7fffffu) | 0x800000u;
  let shift = 126u - exponent; // 14 … 24
  let half = 1u << (shift - 1u);
  let kept = mantissa >> shift;
  let rest = mantissa & ((1u << shift) - 1u);
  let up = rest > half || (rest == half && (kept & 1u) == 1u);
  return sign | (kept + select(0u, 1u, up));
}
