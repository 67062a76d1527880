/** What a tensor is within a model, as far as its name and shape tell. */
export interface TensorRole {
  /** Layer index, or null outside the stack of blocks. */
  layer: number | null;
  /** Short module label for charts, e.g. `self_attn.q_proj`, `embed_tokens`, `norm`. */
  module: string;
  kind: 'embedding' | 'head' | 'norm' | 'linear' | 'bias' | 'other';
}
