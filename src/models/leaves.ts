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

// Token mixers other than attention: convolutions and states that run along a sequence.

/** A convolution of each channel along its sequence. */
export interface Convolution {
  channels: number;
  taps: number;
  /** [channels, taps] */
  weight: Vector;
  bias?: Vector;
  silu: boolean;
}

/** W_out (C ⊙ conv(B ⊙ x)) with (B, C, x) = W_in · input: LFM2's short convolution. */
export interface ShortConv {
  kind: 'conv';
  projections: Linear[];
  conv: Convolution;
  output: Linear;
}

/** Columns of a row: `heads` runs of `dims`, `stride` apart from `begin` on. */
export interface Columns {
  begin: number;
  heads: number;
  stride: number;
  dims: number;
}

/** A matrix state per head that runs along the sequence: Mamba, Mamba-2, the gated delta rule, decaying attention. */
export interface Recurrence {
  kind: 'recurrence';
  rule: 'space' | 'delta' | 'decay';
  projections: Linear[];
  /** Factors of the projected columns. */
  factors?: Vector;
  /** Projected columns that are convolved, side by side. */
  row: Columns[];
  conv: Convolution;
  heads: number;
  /** Rows of the state of a head, and its columns. */
  dim: number;
  states: number;
  /** Heads that have b and c in common. */
  share: number;
  /** Offsets of x, b and c in the convolved row. */
  x: number;
  b: number;
  c: number;
  /** Projected columns of step and, for the delta rule, of β: side by side, at 0 and at `heads`. */
  times: Columns[];
  /** Mamba: step, b and c come of the convolved row by way of a narrow one. */
  narrow?: { project: Linear; expand: Linear; states: readonly [step?: Norm, b?: Norm, c?: Norm] };
  /** b and c are brought to length 1. */
  unit?: Norm;
  /** A [heads · decays], bias of the step [heads], D [heads]. */
  constants: Vector;
  decays: number;
  /** Bounds of the step. */
  low: number;
  high: number;
  betaScale: number;
  scale: number;
  /** Projected columns whose function multiplies what comes out, before or after its norm. */
  gate: { columns: Columns; by: 'silu' | 'sigmoid'; first: boolean };
  /** Of every run of its width; `weight` where the runs have weights of their own. */
  norm?: { norm: Norm; weight?: Vector };
  output: Linear;
}

/** W_out (gelu(W_y · input) ⊙ lru(conv(W_x · input))): Griffin's recurrent block. */
export interface Lru {
  kind: 'lru';
  /** W_y, W_x. */
  projections: Linear[];
  conv: Convolution;
  width: number;
  /** Width of a block of the gates' matrices. */
  block: number;
  /** [2, width / block, block, block] and [2, width], input gate first; [width]. */
  gates: Vector;
  biases: Vector;
  rates: Vector;
  output: Linear;
}
