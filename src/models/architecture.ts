/**
 * A model as the forward pass needs it: every number resolved, every tensor named. Made by `resolveArchitecture` from
 * a family's wiring and a config; the f64 oracle and the runner read nothing else.
 */

import type { Linear, Lru, Norm, Recurrence, ShortConv, Vector } from './leaves';

export type { Linear, Norm, NormKind, Vector } from './leaves';

/**
 * SiLU, ReLU and its square, GELU exact (`gelu_erf`), by tanh, and by tanh with BLOOM's 0.79788456 for √(2/π); `xielu` of
 * Huang and Schlag 2024 (arXiv 2411.13010); `swiglu_clamped` of GPT-OSS, (u + 1) · g · σ(1.702 g) with both clamped at 7.
 */
export type Activation =
  | 'silu'
  | 'gelu_erf'
  | 'gelu_tanh'
  | 'gelu_bloom'
  | 'relu'
  | 'relu2'
  | 'xielu'
  | 'swiglu_clamped';

export interface Architecture {
  modelType: string;
  /** Predicts the token at a position from both sides (encoders), not the next token. */
  masked?: true;
  hidden: number;
  vocab: number;
  embedding: {
    /** [vocab, width]. */
    token: string;
    width: number;
    scale: number;
    /** Learned positions [rows, hidden]; position p is row p + offset, and a row of `types` where there are kinds of text. */
    positions?: { tensor: string; rows: number; offset: number; types?: { tensor: string; rows: number } };
    projection?: Linear;
    norm?: Norm;
    perLayer?: PerLayerInputs;
  };
  /** Streams beside the one that is the model's own (Gemma 3n). */
  planes?: Planes;
  blocks: Block[];
  final: {
    norm?: Norm;
    /** norm(f(W·x)), ahead of the head. */
    transform?: { linear: Linear; activation: Activation; norm: Norm };
    projection?: Linear;
    /** [vocab, width]; the token embedding where tied. */
    head: string;
    tied: boolean;
    /** Of the logits. */
    bias?: Vector;
    divisor: number;
    softcap?: number;
  };
  /** Positions the model can be asked for, where a table limits them. */
  maxPositions?: number;
  /** Stored tensors that the model does not use. */
  unused?: readonly string[];
}

/**
 * Alternating updates (Baykal et al. 2023; transformers modeling_gemma3n.py): `count` streams, the first of which is the stream of the
 * steps. Each further one begins as a projection of the embedding, and ends projected into their common mean, both at the
 * size of the first.
 */
interface Planes {
  count: number;
  begin: Linear[];
  end: Linear[];
}

/** A block passes its steps in order; then the stream is multiplied by `factor`. */
export interface Block {
  index: number;
  steps: Step[];
  factor?: Vector;
  planes?: BlockPlanes;
}

/** Before a block's steps all streams are predicted from each other, after them they are corrected by the steps' result. */
export interface BlockPlanes {
  /** tanh of router · norm(stream), from which the coefficients are computed. */
  norm: Norm;
  router: Linear;
  /** [count², count] and [count, count] */
  predict: Vector;
  correct: Vector;
  /** Factors of the corrected first stream as it enters `share`. */
  scale?: Vector;
  /** Branch added to the other streams. */
  share: Branch;
}

/** x ← after(keep · e + sum(Σ scale · out(part(in(e + ahead(e)))))) over the branches, with e = entry(x). */
export interface Step {
  entry?: Norm;
  keep?: number;
  branches: Branch[];
  sum?: Norm;
  after?: Norm;
}

export interface Branch {
  /** Name within the block: `attention`, `mlp`, `experts`, `shared`, `mamba` … */
  name: string;
  /** Part whose result is added to the stream for this branch alone. */
  ahead?: Part;
  in?: Norm;
  out?: Norm;
  scale: number;
  part: Part;
}

export type { Columns, Convolution, Lru, Recurrence, ShortConv } from './leaves';

/** Computation of a branch. Each kind is a file in src/forward/parts. */
export type Part = Attention | Mlp | Experts | ShortConv | Recurrence | Lru | PerLayer | Laurel | Shared;

/** The part of a kind in a block, or undefined. */
export function partOf<K extends Part['kind']>(
  block: Block,
  kind: K,
): Extract<Part, { kind: K }> | undefined {
  for (const { part } of block.steps.flatMap((step) => step.branches)) {
    if (part.kind === kind) return part as Extract<Part, { kind: K }>;
  }
  return undefined;
}

/** Offset of head h in a row: `begin + h · stride`; with groups `begin + ⌊h / heads⌋ · group stride + (h mod heads) · stride`. */
export interface HeadLayout {
  begin: number;
  stride: number;
  group?: { heads: number; stride: number };
}

export interface Attention {
  kind: 'attention';
  heads: number;
  keyValueHeads: number;
  /** Width of a query or key, and of a value. */
  headDim: number;
  valueDim: number;
  /** One fused projection, or queries, keys and values; their outputs stand side by side in one row. */
  projections: Linear[];
  layout: Record<'query' | 'key' | 'value', HeadLayout>;
  /** Offset of each head's gate in that row: mixed values are multiplied by its sigmoid. */
  gate?: HeadLayout;
  latent?: Latent;
  queryNorm?: HeadNorm;
  keyNorm?: HeadNorm;
  valueNorm?: HeadNorm;
  /** Queries and keys are rotated before they are normed. */
  normAfterRope?: true;
  rope?: Rope;
  /** Rotation of the queries, where it is not `rope`. */
  queryRope?: Rope;
  /** Slope of each head: the score of key j gains slope · j. */
  alibi?: number[];
  /** One score a head that takes its share and brings no value. */
  sinks?: Vector;
  scale: number;
  softcap?: number;
  /** Keys seen, the position itself included. */
  window?: number;
  /** Keys on both sides are seen: all, or so many on each. */
  bothWays?: { reach?: number };
  /** Queries go from chunk to chunk of so many positions: a key of an earlier one is not seen (Llama 4). */
  chunk?: number;
  /** The layer whose keys and values are taken. */
  keysOf?: number;
  output: Linear;
}

/**
 * Queries, keys and values out of narrow rows (DeepSeek-AI 2024, arXiv 2405.04434): the projections make one of queries and one
 * of keys, values and a rotated key for all heads.
 */
interface Latent {
  /** Absent where the projection makes queries at once. */
  query?: { norm: Norm; expand: Linear };
  keyValue: { begin: number; norm: Norm; expand: Linear };
  /** Offset of the rotated key in the projected row, and its width: the last dimensions of queries and keys. */
  rotated: { begin: number; width: number };
}

/** A norm of queries or keys: `width` is one head, or all heads together. */
export type HeadNorm = Norm;

/**
 * Rotary embedding of the first `dims` of a head, (x₁, x₂) ↦ (x₁cos − x₂sin, x₂cos + x₁sin); the pairs are halves of them, or
 * neighbors.
 */
export interface Rope {
  theta: number;
  dims: number;
  pairs?: 'adjacent';
  scaling:
    | { type: 'default' }
    | { type: 'linear'; factor: number }
    | { type: 'llama3'; factor: number; low: number; high: number; original: number }
    /** Pairs that rotate `fast` times within `original` positions stay, those up to `slow` are divided by `factor`. */
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
    | {
        type: 'longrope';
        short: number[];
        long: number[];
        original: number;
        /** By which cos and sin are multiplied, with either list. */
        attention: { short: number; long: number };
      }
    /** The first `turning` of dims / 2 pairs rotate as if all did (Gemma 4); the others stay. */
    | { type: 'proportional'; factor: number; turning: number }
    /** No rotation; position p is multiplied by 1 + size · ln(1 + ⌊(p + 1) / floor⌋) (Llama 4). */
    | { type: 'temperature'; floor: number; size: number };
}

export interface Mlp {
  kind: 'mlp';
  /** One (plain), two (gate, up) or one fused (gate then up); their outputs stand side by side in one row. */
  projections: Linear[];
  gated: boolean;
  activation: Activation;
  inner: number;
  output: Linear;
  /** The parameters of `xielu`: αp, αn, β and ε, one number each. */
  xielu?: readonly [Vector, Vector, Vector, Vector];
  /** Its sigmoid is the factor of the result. */
  factor?: Linear;
  /**
   * Of the gate only what exceeds its mean by some standard deviations is left, less that bound: as many as a normal
   * distribution has this share below (Gemma 3n).
   */
  sparse?: number;
}

/** Experts of which every token takes a few, by the scores of a router. */
export interface Experts {
  kind: 'experts';
  router: Router;
  experts: Mlp[];
}

export interface Router {
  scores: Linear;
  /** Experts that a token takes. */
  chosen: number;
  /**
   * Shares: of all experts by softmax or sigmoid, by softmax of the chosen scores alone, or one after the other among those
   * whose scores are within `margin` of the largest (sparsemixer, Liu et al. 2024, arXiv 2409.12136).
   */
  by: 'softmax' | 'sigmoid' | 'softmax_of_chosen' | 'sparsemixer';
  margin?: number;
  /** Added to the shares for the choice alone. */
  bias?: Vector;
  /** Only experts of the best groups can be chosen: a group counts by its best share, or by the two best together. */
  groups?: { count: number; chosen: number; summed: 1 | 2 };
  /** Shares of the chosen are divided by max(floor, their sum + added). */
  normalized?: { floor: number; added: number };
  scale: number;
  /** Shares multiply what enters an expert, not what leaves it. */
  onInput?: true;
  /** Of the stream ahead of the branch, whose norm is what is scored. */
  norm?: Norm;
  /** Of the shares of each expert. */
  factors?: Vector;
}

/** W_out (f(W_gate · input) ⊙ e), e the layer's own share of the token's embedding. */
export interface PerLayer {
  kind: 'per_layer';
  projections: Linear[];
  activation: 'gelu_tanh';
  /** Index of the share. */
  layer: number;
  output: Linear;
}

/** (norm(W · embedding) + scale · table[id]) / √2, a share of `width` for each layer. */
export interface PerLayerInputs {
  /** [vocab, layers · width] */
  table: string;
  rows: number;
  width: number;
  layers: number;
  scale: number;
  projection: Linear;
  norm: Norm;
}

/** x + norm(right · left · x): a learned augmented residual layer (Gemma 3n). */
export interface Laurel {
  kind: 'laurel';
  /** To the narrow row. */
  projections: Linear[];
  output: Linear;
  norm: Norm;
}

/** W · mlp(norm(attention(norm([x, embedding])))): the transformer that several layers of Zamba 2 share. */
export interface Shared {
  kind: 'shared';
  /** Over twice the width. */
  norm: Norm;
  attention: Attention;
  mlpIn: Norm;
  mlp: Mlp;
  output: Linear;
}
