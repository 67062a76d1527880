// Shared by the compensation kernels: a chunk of rows of a task vector, `rows` × 4·width4, beside the packed mask of
// the whole tensor, [·, mask_words] u32. The chunk begins at row mask_row and column mask_begin (a multiple of 4) of the mask.
// `shift` is added to the diagonal of H as damping; `may_rest` lets converged rows of the conjugate gradients stop.

// Which of four entries of a row are kept.
fn kept4(row: u32, quad: u32) -> vec4<bool> {
  let c = params.mask_begin + 4u * quad;
  let bits = mask[(params.mask_row + row) * params.mask_words + c / 32u] >> (c % 32u);
  return (vec4<u32>(bits, bits >> 1u, bits >> 2u, bits >> 3u) & vec4<u32>(1u)) == vec4<u32>(1u);
}
