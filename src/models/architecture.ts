/**
 * A model as the forward pass needs it: every number resolved, every tensor named. Made by `resolveArchitecture` from
 * a family's wiring and a config; the f64 oracle and the runner read nothing else.
 */

/** `rms`: w·x̂; `rms_plus_one`: (1 + w)·x̂; `layer`: w·(x − mean)/σ + b. */
export type NormKind = 'rms' | 'rms_plus_one' | 'layer';

/** SiLU, ReLU, GELU exact (`gelu_erf`), by tanh, and by tanh with BLOOM's 0.79788456 for √(2/π). */
export type Activation = 'silu' | 'gelu_erf' | 'gelu_tanh' | 'gelu_bloom' | 'relu';

export interface Architecture {
  modelType: string;
  hidden: number;
  vocab: number;
  embedding: {
    /** [vocab, width]. */
    token: string;
    width: number;
    scale: number;
    /** Learned positions [rows, hidden]; position p is row p + offset. */
    positions?: { tensor: string; rows: number; offset: number };
    projection?: Linear;
    norm?: Norm;
  };
  blocks: Block[];
  final: {
    norm?: Norm;
    projection?: Linear;
    /** [vocab, width]; the token embedding where tied. */
    head: string;
    tied: boolean;
    divisor: number;
    softcap?: number;
  };
  /** Positions the model can be asked for, where a table limits them. */
  maxPositions?: number;
}

export interface Norm {
  kind: NormKind;
  weight: string;
  bias?: string;
  epsilon: number;
  /** Elements it runs over, and of its weight. */
  width: number;
}

/** y = W·x + b. */
export interface Linear {
  weight: string;
  bias?: string;
  inputs: number;
  outputs: number;
  /** Shape of the stored weight: [outputs, inputs] or, as Conv1D keeps it, [inputs, outputs]. */
  storage: 'out_in' | 'in_out';
}

export interface Block {
  index: number;
  attention: Attention;
  mlp: Mlp;
  /** Norms ahead of a branch. */
  attentionIn?: Norm;
  mlpIn?: Norm;
  /** Norms of a branch's output, before it joins the stream. */
  attentionOut?: Norm;
  mlpOut?: Norm;
  /** Norms of the stream, after the branch has joined. */
  attentionAfter?: Norm;
  mlpAfter?: Norm;
  /** Both branches read the stream as it enters the block. */
  parallel: boolean;
  residualScale: number;
}

export interface Attention {
  heads: number;
  keyValueHeads: number;
  headDim: number;
  /** One fused projection, or queries, keys and values; their outputs stand side by side in one row. */
  projections: Linear[];
  /** Where head h begins in that row: `begin + h · stride`. */
  layout: Record<'query' | 'key' | 'value', { begin: number; stride: number }>;
  queryNorm?: HeadNorm;
  keyNorm?: HeadNorm;
  rope?: Rope;
  /** Slope of each head: the score of key j gains slope · j. */
  alibi?: number[];
  scale: number;
  softcap?: number;
  /** Keys seen, the position itself included. */
  window?: number;
  output: Linear;
}

/** A norm of queries or keys: `width` is one head, or all heads together. */
export type HeadNorm = Norm;

/** Rotary embedding of the first `dims` of a head, in halves (x₁, x₂) ↦ (x₁cos − x₂sin, x₂cos + x₁sin). */
export interface Rope {
  theta: number;
  dims: number;
  scaling:
    | { type: 'default' }
    | { type: 'linear'; factor: number }
    | { type: 'llama3'; factor: number; low: number; high: number; original: number }
    /** Pairs that turn `fast` times within `original` positions stay, those up to `slow` are divided by `factor`. */
    | {
        type: 'yarn';
        factor: number;
        original: number;
        fast: number;
        slow: number;
        truncate: boolean;
        /** By which cos and sin are multiplied. */
        attention: number;
      }
    /** One divisor a pair: `short` for sequences of up to `original` positions, `long` for longer ones. */
    | { type: 'longrope'; short: number[]; long: number[]; original: number; attention: number };
}

export interface Mlp {
  /** One (plain), two (gate, up) or one fused (gate then up); their outputs stand side by side in one row. */
  projections: Linear[];
  gated: boolean;
  activation: Activation;
  inner: number;
  output: Linear;
}
