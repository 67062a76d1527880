// The triangular kernels on rows of their own: X · Lᵀ = B is solved in place of B.

@group(0) @binding(1) var<storage, read> factor: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> x: array<vec4<f32>>;

fn l4(i: u32) -> vec4<f32> { return factor[i]; }
fn x4(i: u32) -> vec4<f32> { return x[i]; }
fn set_x(i: u32, value: vec4<f32>) { x[i] = value; }
