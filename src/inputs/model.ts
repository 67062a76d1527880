/** A model as a recipe names it: a checkpoint, with its adapter where it has one. */

import type { Dtype } from '../formats/dtype';
import type { Adapter } from './adapter';
import type { Checkpoint } from './checkpoint';
import type { TensorView } from './tensor-view';

/** One tensor of a model, after its adapter. */
export interface ModelTensor {
  /** Stored name, which an output in the shape of this model takes over. */
  name: string;
  view: Omit<TensorView, 'onBase'>;
  shape: readonly number[];
  /** Dtype the checkpoint stores it in; what an adapter puts in its place is brought to it. */
  dtype: Dtype;
}

export interface Model {
  /** Reference as in the recipe. */
  ref: string;
  checkpoint: Checkpoint;
  adapter?: Adapter;
  /** By name without the family's prefix. */
  tensors: Map<string, ModelTensor>;
  /** Formats of eight and four bits whose weights are read as what they stand for. */
  dequantized?: readonly string[];
  /** Its config and its weights contradict each other, or they are quantized: it is of no use, and no other is measured by it. */
  isFaulty?: boolean;
  /** Names in {@link tensors} of the token embedding and of the head, where they are known. */
  embedding?: string;
  head?: string;
  /** True when the head is the embedding: by the config, unless an adapter unties it. */
  tied: boolean;
}
