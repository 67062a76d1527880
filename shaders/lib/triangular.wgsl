// Shared by the triangular kernels. L is [4·width4, 4·width4] f32, X [rows, 4·width4]; a step of the factoring or the
// solve works on the columns 4·column4 … + 32, for the rows of X first_row … first_row + rows. With `unit` 1, X begins as the
// identity: column k of row r is zero for k < r.

fn tile_quads() -> u32 {
  return min(8u, params.width4 - params.column4);
}
