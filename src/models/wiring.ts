/**
 * How a model family computes, as data: which modules a block has, what they are called, where norms stand, and which
 * config fields carry the numbers. `resolveArchitecture` turns it and a config into an {@link Architecture}.
 *
 * Module names inside a block are relative to it (`self_attn.q_proj`); names outside are complete.
 */
import type { Activation, Branch, NormKind, Router } from './architecture';
import type { ConfigFile, FlagField, NumberField } from './config-reader';

export type { FlagField, NumberField };

/** A config value that the wiring takes for granted; any other value is refused by name. */
interface FixedField {
  field: string;
  value: boolean | string | number | null;
  /** Meaning of any other value, in words. */
  otherwise: string;
}

export interface Wiring {
  /** Rows see both sides, and the head predicts their own tokens. */
  masked?: true;
  sizes: {
    /** Or as many as a list has entries. */
    layers: NumberField & { lengthOf?: string };
    hidden: NumberField;
    heads: NumberField;
    /** Absent or null: as many as heads. */
    keyValueHeads?: NumberField;
    /** Absent or null: hidden / heads. */
    headDim?: NumberField;
    /** Width inside the MLP; null: 4 · hidden. */
    inner: NumberField | 'four_times_hidden' | ((config: ConfigFile) => number);
  };
  norm: {
    kind: NormKind;
    bias: FlagField;
    epsilon: NumberField;
    /** Norms have no weights. */
    weightless?: true;
  };
  embedding: {
    /** `sqrt_hidden_bf16` rounds it, as RecurrentGemma does. */
    scale?: 'sqrt_hidden' | 'sqrt_hidden_bf16' | NumberField;
    norm?: string;
    /**
     * Learned positions: row `position + offset`; `count` rows are usable. Behind the row of a token, where positions begin with
     * the next one, `count` is that of all rows. Row 0 of `types` is added to each.
     */
    positions?: {
      tensor: string;
      offset: number | { behind: NumberField };
      count: NumberField;
      types?: { tensor: string; count: NumberField };
    };
    /** Where the embedding is narrower or wider than the stream. */
    projection?: { into: string; outOf: string; width: NumberField };
  };
  norms: {
    attentionIn?: string;
    /** On the attention's output, before it joins the stream. */
    attentionOut?: string;
    mlpIn?: string;
    mlpOut?: string;
    final?: string;
    /** When off, `attentionIn` and `mlpIn` stand behind the sums instead, and there is no final norm (OPT 350m). */
    before?: FlagField;
    /** When on, there is no final norm. */
    finalRemoved?: FlagField;
  };
  /** x + attention(norm x) + mlp(norm x) instead of one after the other. */
  parallel?: FlagField;
  /** Factor on every branch before it joins the stream. */
  residualScale?: NumberField | { depth: NumberField };
  attention: {
    projections:
      | { query: string; key: string; value: string }
      /**
       * `blocks`: all queries, all keys, all values. `per_head`: query, key and value of each head in turn. `per_group`: the
       * queries that share a key, that key, its value. `quarters`: four parts, in each queries, values, keys of a quarter of
       * the heads.
       */
      | { fused: string; order: 'blocks' | 'per_head' | 'per_group' | 'quarters' };
    bias: FlagField;
    output: string;
    outputBias: FlagField;
    /** Norms of queries and keys: of each head, or of the whole projection. */
    headNorm?: {
      query: string;
      key: string;
      over: 'head' | 'projection';
      afterRope?: true;
      /** Without weights, only in layers that rotate (Llama 4). */
      weightless?: { when: FlagField; epsilon: NumberField };
    };
    /** Keys and values out of a narrow row, queries too where there is a rank for them. */
    latent?: LatentWiring;
    /** The query projection brings a gate behind each head's query. */
    gated?: true;
    /** Factors of what enters the projections, and of keys. */
    inputFactor?: NumberField;
    keyFactor?: NumberField;
    /** In layers that see all, values are what keys are made of. */
    valuesAreKeys?: FlagField;
    /** Values are normed, without weights. */
    valueNorm?: true;
    /** Queries of layers without rotation are scaled by their position (Llama 4). */
    temperature?: { floor: NumberField; size: NumberField; when: FlagField };
    /** Layers that rotate see their own chunk of so many positions. */
    chunk?: NumberField;
    /** Tensor of one score a head. */
    sinks?: string;
    /** `head_dim`: 1/√headDim. `root`: 1/√field. `factor`: the field itself, or a number. */
    scale: 'head_dim' | number | { root: NumberField } | { factor: NumberField };
    /** When off, scores are not scaled by 1/√headDim. */
    scaleSwitch?: FlagField;
    /** Scores of positions scaled by yarn grow with `mscale_all_dim` (DeepSeek). */
    yarnScores?: true;
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
    /** List of the share of the gate's values that are left out, by layer. */
    sparse?: (config: ConfigFile, layer: number) => number | undefined;
    /** Factors of the gate and of the result. */
    gateFactor?: NumberField;
    downFactor?: NumberField;
    /** Module of the parameters of xIELU. */
    xielu?: string;
  } & ({ gate: string } | { fusedGate: true } | { plain: true });
  /** Layers that have experts in place of the MLP. */
  experts?: ExpertsWiring;
  /** Mixers that replace attention, or go beside it; a layer whose name is not among `kinds` has attention. */
  mixers?: {
    of: (config: ConfigFile, layer: number) => string;
    kinds: Readonly<Record<string, MixerMaker | 'mlp' | 'refused'>>;
    /** Norms of layers of a kind, where they are others. */
    norms?: Readonly<Record<string, { [K in keyof Wiring['norms']]?: Wiring['norms'][K] | undefined }>>;
  };
  /** Blocks have one branch only: the mixer of `mixers.of`, `mlp` included. */
  single?: true;
  /** Norms ahead of a branch replace the stream: x ← keep · norm(x) + share · branch. */
  replacing?: { keep: Factors; share: Factors };
  /** Names and widths of what every layer gets of the token itself. */
  perLayer?: PerLayerWiring;
  /** A narrow residual beside attention, by whose root two their sum is divided (Gemma 3n). */
  laurel?: { rank: NumberField; left: string; right: string; norm: string };
  /** Streams beside the model's own; the layers' per-token inputs go to them. */
  planes?: PlanesWiring;
  head: {
    /** norm(f(W·x)) ahead of it. */
    transform?: { linear: string; bias: FlagField; activation: ActivationField; norm: string };
    /** Tensor added to the logits. */
    bias?: string;
    /** Logits are multiplied by it. */
    factor?: NumberField;
    /** Logits are divided by hidden / this width. */
    widthBase?: NumberField;
    /** Logits are divided by it. */
    divisor?: NumberField;
    softcap?: NumberField;
  };
  /** Names that files may have and the model does not use. */
  unused?: readonly string[];
  fixed?: readonly FixedField[];
  /** Changes by flags of the config, applied in order. */
  variants?: readonly { when: FlagField | { field: string; is: string }; change: Partial<Wiring> }[];
  /** Width of a head in layers that see all, where it is another. */
  globalHeadDim?: (config: ConfigFile, layer: number) => number | undefined;
  /** Heads of keys in layers that see all, where they are others. */
  globalKeyValueHeads?: (config: ConfigFile, layer: number) => number | undefined;
  /** Width inside the MLP of a layer, where it is another. */
  layerInner?: (config: ConfigFile, layer: number) => number | undefined;
  /** How many of the last layers take the keys and values of the last layer of their kind before them. */
  sharedKeys?: NumberField;
}

export interface PlanesWiring {
  count: NumberField;
  /** Lists of projections, outside the blocks. */
  begin: string;
  end: string;
  modules: { norm: string; router: string; predict: string; correct: string; scale: string };
  scaled: FlagField;
}

/** Fields of a factor by the kind of a layer's mixer, and of its MLP. */
type Factors = Readonly<Record<string, NumberField>>;

/** Makes a mixer: the branch in place of attention, or beside it. */
export type MixerMaker = (
  block: BlockContext,
  attention: () => Pick<Branch, 'name' | 'part'>,
) => readonly (Pick<Branch, 'name' | 'part' | 'ahead'> & { factor?: NumberField })[];

interface PerLayerWiring {
  width: NumberField;
  rows: NumberField;
  table: string;
  projection: string;
  norm: string;
  modules: { gate: string; out: string; norm: string };
  /** Tensor of one number by which the stream is multiplied behind a block. */
  factor?: string;
}

export interface ExpertsWiring {
  layers: LayerRule;
  count: NumberField;
  chosen: NumberField;
  inner: NumberField;
  /** Modules of expert i, or tensors of all of them one behind the other: gate and up in one. */
  weights:
    | { each: (index: number) => readonly [gate: string | undefined, up: string, down: string] }
    | { up: string; down: string; storage: 'out_in' | 'in_out'; biased?: true };
  activation?: Activation;
  bias?: FlagField;
  router: {
    module: string;
    biased?: boolean;
    by: Router['by'];
    margin?: NumberField;
    /** Tensor added to the shares for the choice alone; `leadingShape`: its dimensions in front of that of the experts. */
    correction?: { name: string; leadingShape: readonly number[]; when?: FlagField };
    /** Only experts of the best groups can be chosen; a group counts by the sum of so many of its best shares. */
    groups?: { count: NumberField; chosen: NumberField; summed: 1 | 2 };
    /** Shares of the chosen are divided by max(floor, their sum + added). Absent: 0 each. */
    normalized?: { when: FlagField; floor?: NumberField; added?: number };
    scale?: NumberField;
    onInput?: true;
    /** The router reads the stream itself, through a norm whose weights are this tensor, and its scores are divided by √hidden. */
    norm?: string;
    /** Tensor of a factor of each expert's share. */
    factors?: string;
  };
  /** Experts stand beside the MLP, with norms of their own; the norm behind both is `mlpOut`. */
  beside?: { when: FlagField; mlpOut: string; in: string; out: string };
  /** An expert that every token takes, `widthFactor` times as wide as `inner`; 0: there is none. */
  shared?: {
    modules: readonly [gate: string | undefined, up: string, down: string];
    inner: NumberField;
    widthFactor?: NumberField;
    factor?: string;
  };
}

/** Ranks, widths and modules of latent attention. */
export interface LatentWiring {
  queryRank: NumberField;
  keyValueRank: NumberField;
  /** Widths of a head: not rotated, rotated, value. */
  plain: NumberField;
  rotated: NumberField;
  value: NumberField;
  modules: {
    query: string;
    queryNarrow: string;
    queryNorm: string;
    queryWide: string;
    keyValueNarrow: string;
    keyValueNorm: string;
    keyValueWide: string;
  };
}

/** Name of the activation in the config, or a fixed one; `orElse` as in {@link NumberField}. */
export type ActivationField = { fields: readonly string[]; orElse: string };

export interface RopeWiring {
  theta: number;
  /** Pairs are neighbors instead of halves. */
  pairs?: 'adjacent';
  /** Only layers with a window rotate. */
  windowedOnly?: true;
  /** Share of the head that rotates, or how many of its dimensions; absent: all of it. */
  fraction?: NumberField;
  dims?: NumberField;
  /** Sliding layers have their own base; its old field and default. */
  local?: NumberField;
  /** Layers without: a list of 0 (none) and 1, else every `interval`-th. */
  skip?: { list: string; interval: NumberField };
}

/** Layers that see only the last `size` positions. A null size means none. */
export interface WindowWiring {
  size: NumberField;
  /** The size counts only when this is on. */
  enabled?: FlagField;
  /** The list with an entry for each layer. Default: `layer_types`. */
  list?: string;
  /**
   * `all`, or by the list; where a config has none, by a rule for the layers, counted from 0, that have a window.
   * `exceptEvery`: all but each so-maniest (for 6 the layers 5, 11, …). `notMultiplesOf`: all but 0 and its multiples.
   * `fromLayer`: that one and all after it.
   */
  layers:
    | 'all'
    | { orElse: 'even' | 'odd' }
    | { orElse: { exceptEvery: NumberField } }
    | { orElse: { notMultiplesOf: NumberField } }
    | { orElse: { fromLayer: NumberField } }
    | { orElse: 'without_rope' };
}

/** The resolved sizes, and what every part needs to read more of the config. */
export interface Context {
  config: ConfigFile;
  /** Names outside the blocks, and how linear weights are stored. */
  family: { embedding: string; head: string; stack: string; linearStorage: 'out_in' | 'in_out' };
  wiring: Wiring;
  layers: number;
  hidden: number;
  heads: number;
  keyValueHeads: number;
  headDim: number;
  inner: number;
}

/** A context inside a block: names begin with its prefix. */
export interface BlockContext extends Context {
  index: number;
  prefix: string;
  /** Values are what keys are made of. */
  valuesAreKeys?: boolean;
  /** The layer whose keys and values this one takes. */
  keysOf?: number;
}

/** Whether a layer has experts. */
export type LayerRule = (config: ConfigFile, layer: number) => boolean;

export const HEAD_NORM = { query: 'self_attn.q_norm', key: 'self_attn.k_norm', over: 'head' } as const;

/** Sizes of a model with as many keys as queries, by the names of their fields in all spellings. */
export const sizesOf = (layers: Names, hidden: Names, heads: Names, inner?: Names): Wiring['sizes'] => ({
  layers: fieldOf(layers),
  hidden: fieldOf(hidden),
  heads: fieldOf(heads),
  inner: inner === undefined ? 'four_times_hidden' : fieldOf(inner),
});
type Names = string | readonly string[];
const fieldOf = (names: Names): NumberField => ({ fields: typeof names === 'string' ? [names] : names });

/** Modules of queries, keys and values. */
export const apart = (query: string, key: string, value: string) => ({ query, key, value });

/** Attention with or without biases everywhere, scores over the root of a head's width. */
export const attentionOf = (
  projections: Wiring['attention']['projections'],
  output: string,
  bias: FlagField,
  position: Wiring['attention']['position'],
): Wiring['attention'] => ({ projections, bias, output, outputBias: bias, scale: 'head_dim', position });

type MlpMaker<M> = (modules: M, bias: FlagField, activation: ActivationField) => Wiring['mlp'];
/** MLPs by their modules: up and down · gate and up in one, and down · gate, up, down. */
export const plainMlp: MlpMaker<readonly [string, string]> = ([up, down], bias, activation) => ({
  ...{ plain: true, up, down, bias, activation },
});
export const fusedMlp: MlpMaker<readonly [string, string]> = ([up, down], bias, activation) => ({
  ...{ fusedGate: true, up, down, bias, activation },
});
export const gatedMlp: MlpMaker<readonly [string, string, string]> = (
  [gate, up, down],
  bias,
  activation,
) => ({
  ...{ gate, up, down, bias, activation },
});

/** Modules of expert i below `module`. */
export const named = (module: string, gate: string, up: string, down: string): ExpertsWiring['weights'] => ({
  each: (i) => [`${module}.${i}.${gate}`, `${module}.${i}.${up}`, `${module}.${i}.${down}`],
});

/** All layers have a window. */
export const windowOf = (size: NumberField): WindowWiring => ({ size, layers: 'all' });
/** All but each so-maniest. */
export const windowEvery = (size: NumberField, exceptEvery: NumberField): WindowWiring => ({
  size,
  layers: { orElse: { exceptEvery } },
});

/** A wiring like another: of `attention` what is named changes, any other part is replaced. */
export const vary = (
  base: Wiring,
  { attention, ...rest }: Omit<Partial<Wiring>, 'attention'> & { attention: Partial<Wiring['attention']> },
): Wiring => ({ ...base, ...rest, attention: { ...base.attention, ...attention } });
