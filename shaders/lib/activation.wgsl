// Activations of an MLP: 0 SiLU, 1 exact GELU, 2 tanh GELU, 3 ReLU.

fn activation(kind: u32, v: f32) -> f32 {
  if (kind == 0u) { return v * sigmoid_f32(v); }
  if (kind == 1u) { return 0.5 * v * (1.0 + erf_f32(v * 0.70710678)); }
  if (kind == 2u) { return 0.5 * v * (1.0 + tanh_f32(0.79788456 * (v + 0.044715 * v * v * v))); }
  return max(v, 0.0);
}
