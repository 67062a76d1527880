import type { Wiring } from './wiring';

/**
 * What is known about a model family, as data: how its tensors outside the blocks are called, whether the head is
 * the embedding, and how the blocks are told apart. Merging needs no more than this; a family that is not
 * listed merges all the same, tensor by tensor.
 */
export interface Family {
  /** Name of the group, e.g. `llama`. */
  id: string;
  /**
   * `model_type` → whether the head is tied to the embedding when the config does not say (the default of the
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
  /** How the linear weights of the blocks are stored; GPT-2's Conv1D keeps [in, out]. */
  linearStorage: 'out_in' | 'in_out';
}
