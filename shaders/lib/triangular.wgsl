// What the triangular kernels share. L is [4·width4, 4·width4] f32, X [rows, 4·width4]; a step of the factoring or the
// solve works on the columns 4·column4 … + 32, for the rows of X first_row … first_row + rows.

struct Params {
  stamp: vec4<u32>,
  rows: u32,
  first_row: u32,
  width4: u32,
  column4: u32,
  // X begins as the identity: column k of row r is zero for k < r
  unit: u32,
}

fn tile_quads() -> u32 {
  return min(8u, params.width4 - params.column4);
}
