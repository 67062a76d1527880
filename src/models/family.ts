import type { Wiring } from './wiring';

/**
 * A model family as data: the names of its tensors outside the blocks, whether the head is the embedding, and how the kinds of
 * blocks are distinguished. Merging needs no more; a family that is not listed is merged all the same, tensor by tensor.
 */
export interface Family {
  /** Name of the group, e.g. `llama`. */
  id: string;
  /**
   * `model_type` → whether the head is tied to the embedding when the config has no such field (the default of the
   * configuration class in transformers), and how it computes.
   */
  modelTypes: Readonly<Record<string, { tiedByDefault: boolean; wiring?: Wiring }>>;
  /** First part of the names that a checkpoint may have or lack: the bare model is saved without it. */
  prefix: string;
  /** Token embedding and head, with prefix. */
  embedding: string;
  head: string;
  /** Stack of the blocks, with prefix: a block tensor is `${stack}${index}.…`. */
  stack: string;
  /** How the linear weights of the blocks are stored; GPT-2's Conv1D stores [in, out]. */
  linearStorage: 'out_in' | 'in_out';
}
