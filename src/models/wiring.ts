/**
 * How a model family computes, as data: which modules a block has, what they are called, where norms stand, and which
 * config fields carry the numbers. `resolveArchitecture` turns it and a config into an {@link Architecture}.
 *
 * Module names inside a block are relative to it (`self_attn.q_proj`); names outside are complete.
 */
import type { NormKind } from './architecture';

/** A number of the config: the first of `fields` that the file has. `orElse` is the configuration class's default. */
export interface NumberField {
  /** Dotted paths reach into objects: `rope_parameters.rope_theta`. */
  fields: readonly string[];
  /** For a file that has none of the fields; without it the field is required. */
  orElse?: number;
}

/** A switch of the config, or a fixed one. */
export type FlagField = boolean | { field: string; orElse: boolean };

/** A config value that the wiring takes for granted; any other value is refused by name. */
export interface FixedField {
  field: string;
  value: boolean;
  /** What the other value would mean, in words. */
  otherwise: string;
}

export interface Wiring {
  sizes: {
    layers: NumberField;
    hidden: NumberField;
    heads: NumberField;
    /** Absent or null: as many as heads. */
    keyValueHeads?: NumberField;
    /** Absent or null: hidden / heads. */
    headDim?: NumberField;
    /** Width inside the MLP; null: 4 · hidden. */
    inner: NumberField | 'four_times_hidden';
  };
  norm: { kind: NormKind; bias: boolean; epsilon: NumberField };
  embedding: {
    scale?: 'sqrt_hidden' | NumberField;
    norm?: string;
    /** Learned positions: row `position + offset`; `count` rows are usable. */
    positions?: { tensor: string; offset: number; count: NumberField };
    /** Where the embedding is narrower or wider than the stream. */
    projection?: { into: string; outOf: string; width: NumberField };
  };
  norms: {
    attentionIn?: string;
    /** On the attention's output, before it joins the stream. */
    attentionOut?: string;
    mlpIn?: string;
    mlpOut?: string;
    final: string;
    /** When off, `attentionIn` and `mlpIn` stand behind the sums instead, and there is no final norm (OPT 350m). */
    before?: FlagField;
    /** When on, there is no final norm. */
    finalRemoved?: FlagField;
  };
  /** x + attention(norm x) + mlp(norm x) instead of one after the other. */
  parallel?: FlagField;
  /** Factor on every branch before it joins the stream. */
  residualScale?: NumberField;
  attention: {
    projections:
      | { query: string; key: string; value: string }
      /** `blocks`: all queries, all keys, all values. `per_head`: query, key and value of each head in turn. */
      | { fused: string; order: 'blocks' | 'per_head' };
    bias: FlagField;
    output: string;
    outputBias: FlagField;
    /** Norms of queries and keys: of each head, or of the whole projection. */
    headNorm?: { query: string; key: string; over: 'head' | 'projection' };
    /** `head_dim`: 1/√headDim. `root`: 1/√field. `factor`: the field itself. */
    scale: 'head_dim' | { root: NumberField } | { factor: NumberField };
    /** When off, scores are not scaled by 1/√headDim. */
    scaleSwitch?: FlagField;
    /** When on, scores of block i are divided by i + 1. */
    inverseLayerScale?: FlagField;
    position: RopeWiring | 'alibi' | 'none';
    /** tanh soft-cap of the scores; null: none. */
    softcap?: NumberField;
    window?: WindowWiring;
  };
  mlp: {
    up: string;
    down: string;
    bias: FlagField;
    activation: ActivationField;
  } & ({ gate: string } | { fusedGate: true } | { plain: true });
  head: {
    /** Logits are divided by it. */
    divisor?: NumberField;
    softcap?: NumberField;
  };
  fixed?: readonly FixedField[];
}

/** Name of the activation in the config, or a fixed one; `orElse` as in {@link NumberField}. */
export type ActivationField = { fields: readonly string[]; orElse: string };

export interface RopeWiring {
  theta: number;
  /** Share of the head that rotates; absent: all of it. */
  fraction?: NumberField;
  /** Sliding layers have their own base; its old field and default. */
  local?: NumberField;
  /** Layers without: a list of 0 (none) and 1, else every `interval`-th. */
  skip?: { list: string; interval: NumberField };
}

/** Which layers see only the last `size` positions. A null size means none. */
export interface WindowWiring {
  size: NumberField;
  /** The size counts only when this is on. */
  enabled?: FlagField;
  /** `all`, or as `layer_types` says; where a config has none, by a rule. */
  layers:
    | 'all'
    | { orElse: 'even' }
    | { orElse: { everyOtherThan: NumberField } }
    | { orElse: { from: NumberField } }
    | { orElse: 'without_rope' };
}
