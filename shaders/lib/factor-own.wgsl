// The triangular kernels on one matrix: the rows that are solved are those of the factor itself (Cholesky).

fn l4(i: u32) -> vec4<f32> { return factor[i]; }
fn x4(i: u32) -> vec4<f32> { return factor[i]; }
fn set_x(i: u32, value: vec4<f32>) { factor[i] = value; }
