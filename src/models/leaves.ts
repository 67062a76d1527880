/** Leaves of an architecture, which hold weights: norms, linear maps, and vectors that are used whole. */

/** `rms`: w·x̂; `rms_plus_one`: (1 + w)·x̂; `layer`: w·(x − mean)/σ + b; `layer_plus_one` with 1 + w. */
export type NormKind = 'rms' | 'rms_plus_one' | 'layer' | 'layer_plus_one';

export interface Norm {
  kind: NormKind;
  /** The tensor, or one number for all elements. */
  weight: string | number;
  bias?: string;
  epsilon: number;
  /** Elements it runs over, and of its weight. */
  width: number;
}

/** y = scale · (W·x + b). */
export interface Linear {
  weight: string;
  bias?: string;
  inputs: number;
  outputs: number;
  /** Shape of the stored weight: [outputs, inputs] or, in Conv1D, [inputs, outputs]. */
  storage: 'out_in' | 'in_out';
  /** The weight is one of several in a tensor [of, …]; so is the bias. */
  stack?: { index: number; of: number };
  scale?: number;
  /** A low-rank update that belongs to the model: y gains up · down · x (Zamba 2). */
  update?: { down: Linear; up: Linear };
}

/** Tensors that are used whole, in f32, concatenated, or a number in their place. `decay` stands for −e^value. */
export interface Vector {
  tensors: readonly (
    | { name: string; shape: readonly number[]; as?: 'decay' }
    | { fill: number; count: number }
  )[];
}
