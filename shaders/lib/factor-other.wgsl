// The triangular kernels on rows of their own: X · Lᵀ = B is solved in place of B.

fn l4(i: u32) -> vec4<f32> { return factor[i]; }
fn x4(i: u32) -> vec4<f32> { return x[i]; }
fn set_x(i: u32, value: vec4<f32>) { x[i] = value; }
