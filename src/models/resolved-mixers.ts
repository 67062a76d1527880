/** Makers of the mixers that replace attention, from the fields and names of a family. */
import type { Columns, Convolution, Norm, Recurrence, Vector } from './architecture';
import { at, type ConfigFile, needNumber, needSize, or, readFlag, valueAt } from './config-reader';
import { type BlockContext, linear, makeNorm, refuseScaledBias, vector } from './resolution-context';
import type { FlagField, MixerMaker, NumberField } from './wiring';

const MOST = 3.4e38;
/** What most rules have. */
const PLAIN = { decays: 1, low: 0, high: MOST, betaScale: 1, scale: 1 };

/** The entry of a list of the config for a layer; `orElse` without a list. */
export const listed =
  (list: string, orElse = 'attention') =>
  (config: ConfigFile, layer: number): string => {
    const values = valueAt(config, list);
    const value = Array.isArray(values) ? values[layer] : undefined;
    return typeof value === 'string' ? value : orElse;
  };

const columns = (begin: number, dims: number): Columns => ({ begin, heads: 1, stride: 0, dims });

/** A convolution whose weights are one tensor, or several, concatenated. */
export function convolution(
  { prefix }: BlockContext,
  names: readonly (readonly [module: string, channels: number])[],
  taps: number,
  biased: boolean,
  silu: boolean,
): Convolution {
  const tensors = names.map(([name, channels]) => ({
    name: `${prefix}${name}.weight`,
    shape: [channels, 1, taps],
  }));
  const channels = names.reduce((sum, [, n]) => sum + n, 0);
  const bias = names.map(([name, n]) => ({ name: `${prefix}${name}.bias`, shape: [n] }));
  return { channels, taps, weight: { tensors }, ...(biased && { bias: { tensors: bias } }), silu };
}

/** A of [shape] stored as its logarithm, bias of the step, D; with defaults for what a family lacks. */
function constants(
  log: string,
  shape: readonly number[],
  heads: number,
  bias: string | undefined,
  direct: string | undefined,
): Vector {
  const part = (name: string | undefined) =>
    name === undefined ? { fill: 0, count: heads } : { name, shape: [heads] };
  return { tensors: [{ name: log, shape, as: 'decay' }, part(bias), part(direct)] };
}

/** Mamba-2 (transformers modeling_mamba2.py): fields in the spellings of all who have it, modules under `module`. */
export function mamba2(
  module: string,
  options: {
    heads: string;
    headDim: string;
    states: string;
    groups: string;
    taps: string;
    convBias: FlagField;
    bias: FlagField;
    /** Of what comes out, where it is another. */
    outBias?: FlagField;
    epsilon: NumberField;
    /** Norms run over groups of their own. */
    grouped?: true;
    normed?: FlagField;
    normFirst?: FlagField;
    inFactor?: NumberField;
    /** List of factors of gate, x, b, c and step. */
    factors?: string;
    outFactor?: NumberField;
    /** The least step of a family whose class does not read `time_step_limit`. */
    least?: NumberField;
  },
): MixerMaker {
  return (block) => {
    const { config, prefix, hidden } = block;
    const [heads, dim] = [needSize(config, at(options.heads)), needSize(config, at(options.headDim))];
    const [states, groups] = [needSize(config, at(options.states)), needSize(config, or(1, options.groups))];
    const inner = heads * dim;
    const channels = inner + 2 * groups * states;
    const name = `${prefix}${module}.`;
    const factor = options.inFactor ? needNumber(config, options.inFactor) : 1;
    refuseScaledBias(block, options.bias, factor);
    const isNormed = readFlag(config, options.normed ?? true);
    const normWidth = options.grouped ? inner / groups : inner;
    const norm: Norm = {
      ...makeNorm(block, `${name}norm`, normWidth),
      kind: 'rms',
      epsilon: needNumber(config, options.epsilon),
    };
    const hasOwnWeights = normWidth !== inner;
    const widths = [inner, inner, groups * states, groups * states, heads];
    const part: Recurrence = {
      ...PLAIN,
      kind: 'recurrence',
      rule: 'space',
      projections: [
        linear(block, `${prefix}${module}.in_proj`, hidden, inner + channels + heads, options.bias, factor),
      ],
      ...(options.factors !== undefined && {
        factors: {
          tensors: widths.map((count, i) => ({
            fill: needNumber(config, or(1, `${options.factors}.${i}`)),
            count,
          })),
        },
      }),
      row: [columns(inner, channels)],
      conv: convolution(
        block,
        [[`${module}.conv1d`, channels]],
        needSize(config, or(4, options.taps)),
        readFlag(config, options.convBias),
        true,
      ),
      heads,
      dim,
      states,
      share: heads / groups,
      x: 0,
      b: inner,
      c: inner + groups * states,
      times: [columns(inner + channels, heads)],
      constants: constants(`${name}A_log`, [heads], heads, `${name}dt_bias`, `${name}D`),
      ...(options.least ? { low: needNumber(config, options.least), high: MOST } : limits(config)),
      gate: {
        columns: columns(0, inner),
        by: 'silu',
        first: !readFlag(config, options.normFirst ?? false),
      },
      ...(isNormed && {
        norm: hasOwnWeights
          ? { norm: { ...norm, weight: 1 }, weight: vector(`${name}norm.weight`, inner) }
          : { norm },
      }),
      output: linear(block, `${prefix}${module}.out_proj`, inner, hidden, options.outBias ?? options.bias),
    };
    return [{ name: 'mamba', part, ...(options.outFactor && { factor: options.outFactor }) }];
  };
}

/** Bounds of the step by `time_step_limit`; what is no number is infinite. */
function limits(config: ConfigFile): { low: number; high: number } {
  const list = valueAt(config, 'time_step_limit');
  const bound = (i: number, orElse: number) => {
    const value = Array.isArray(list) && !(list[i] instanceof Map) ? list[i] : undefined;
    return value === undefined ? orElse : needNumber(config, at(`time_step_limit.${i}`));
  };
  return { low: bound(0, 0), high: bound(1, MOST) };
}

/** Mamba (transformers modeling_mamba.py, modeling_jamba.py). */
export function mamba(
  module: string,
  options: {
    inner: (config: ConfigFile, hidden: number) => number;
    states: NumberField;
    taps: NumberField;
    rank: NumberField;
    bias: FlagField;
    convBias: FlagField;
    /** Norms of step, b and c. */
    norms?: readonly [string, string, string];
  },
): MixerMaker {
  return (block) => {
    const { config, prefix, hidden } = block;
    const inner = options.inner(config, hidden);
    const states = needSize(config, options.states);
    const automatic = typeof valueAt(config, options.rank.fields[0]!) === 'string';
    const rank = automatic ? Math.ceil(hidden / 16) : needSize(config, options.rank);
    const name = `${prefix}${module}.`;
    const widths = [rank, states, states];
    const norms = options.norms?.map((norm, i) => makeNorm(block, name + norm, widths[i]!)) ?? [];
    const part: Recurrence = {
      ...PLAIN,
      kind: 'recurrence',
      rule: 'space',
      projections: [linear(block, `${name}in_proj`, hidden, 2 * inner, options.bias)],
      row: [columns(0, inner)],
      conv: convolution(
        block,
        [[`${module}.conv1d`, inner]],
        needSize(config, options.taps),
        readFlag(config, options.convBias),
        true,
      ),
      heads: inner,
      dim: 1,
      states,
      share: inner,
      x: 0,
      b: 0,
      c: 0,
      times: [],
      narrow: {
        project: linear(block, `${name}x_proj`, inner, rank + 2 * states, false),
        expand: linear(block, `${name}dt_proj`, rank, inner, true),
        states: [norms[0], norms[1], norms[2]] as never,
      },
      constants: constants(`${name}A_log`, [inner, states], inner, undefined, `${name}D`),
      decays: states,
      gate: { columns: columns(inner, inner), by: 'silu', first: true },
      output: linear(block, `${name}out_proj`, inner, hidden, options.bias),
    };
    return [{ name: 'mamba', part }];
  };
}

/** The gated delta rule (transformers modeling_qwen3_next.py, modeling_qwen3_5.py, modeling_olmo_hybrid.py). */
export function delta(options: {
  /** Queries, keys, values and gate as modules of their own, in one each, or in one for every key head in turn. */
  modules: 'apart' | 'joined' | 'by_key_head';
  norm: string;
  normEpsilon: NumberField;
  output: string;
  negative?: FlagField;
}): MixerMaker {
  return (block) => {
    const { config, prefix, hidden } = block;
    const keyHeads = needSize(config, at('linear_num_key_heads'));
    const heads = needSize(config, at('linear_num_value_heads'));
    const states = needSize(config, at('linear_key_head_dim'));
    const dim = needSize(config, at('linear_value_head_dim'));
    const taps = needSize(config, or(4, 'linear_conv_kernel_dim'));
    const [keys, values, share] = [keyHeads * states, heads * dim, heads / keyHeads];
    const name = `${prefix}linear_attn.`;
    const layer = (module: string, outputs: number) => linear(block, name + module, hidden, outputs, false);
    const row = 2 * keys + values;
    const after = row + values;
    const group = 2 * states + 2 * share * dim;
    const inGroups = (begin: number, dims: number): Columns => ({
      begin,
      heads: keyHeads,
      stride: group,
      dims,
    });
    const timesInGroups = (begin: number): Columns => ({
      begin: keyHeads * group + begin,
      heads: keyHeads,
      stride: 2 * share,
      dims: share,
    });
    const byHead = options.modules === 'by_key_head';
    const isApart = options.modules === 'apart';
    const projections = {
      apart: () => [
        layer('q_proj', keys),
        layer('k_proj', keys),
        layer('v_proj', values),
        layer('g_proj', values),
        layer('a_proj', heads),
        layer('b_proj', heads),
      ],
      joined: () => [
        layer('in_proj_qkv', row),
        layer('in_proj_z', values),
        layer('in_proj_a', heads),
        layer('in_proj_b', heads),
      ],
      by_key_head: () => [layer('in_proj_qkvz', keyHeads * group), layer('in_proj_ba', 2 * heads)],
    }[options.modules]();
    const width = states ** -0.5;
    const part: Recurrence = {
      ...PLAIN,
      kind: 'recurrence',
      rule: 'delta',
      projections,
      row: byHead
        ? [inGroups(0, states), inGroups(states, states), inGroups(2 * states, share * dim)]
        : [columns(0, row)],
      conv: convolution(
        block,
        isApart
          ? [
              ['linear_attn.q_conv1d', keys],
              ['linear_attn.k_conv1d', keys],
              ['linear_attn.v_conv1d', values],
            ]
          : [['linear_attn.conv1d', row]],
        taps,
        false,
        true,
      ),
      heads,
      dim,
      states,
      share,
      x: 2 * keys,
      b: keys,
      c: 0,
      times: byHead ? [timesInGroups(share), timesInGroups(0)] : [columns(after, 2 * heads)],
      unit: { kind: 'rms', weight: width, epsilon: 1e-6 / states, width: states },
      constants: constants(`${name}A_log`, [heads], heads, `${name}dt_bias`, undefined),
      betaScale: options.negative && readFlag(config, options.negative) ? 2 : 1,
      scale: width,
      gate: {
        columns: byHead ? inGroups(2 * states + share * dim, share * dim) : columns(row, values),
        by: 'silu',
        first: false,
      },
      norm: {
        norm: {
          kind: 'rms',
          weight: `${name}${options.norm}.weight`,
          epsilon: needNumber(config, options.normEpsilon),
          width: dim,
        },
      },
      output: linear(block, name + options.output, values, hidden, false),
    };
    return [{ name: 'delta', part }];
  };
}

/** Decaying attention (transformers modeling_minimax.py): slopes follow from head and layer. */
export const lightning: MixerMaker = (block) => {
  const { prefix, hidden, heads, headDim, layers, index } = block;
  const width = heads * headDim;
  const name = `${prefix}self_attn.`;
  const share = 1 - index / (layers - 1 + 1e-5) + 1e-5;
  const slopes = Array.from({ length: heads }, (_, h) => 2 ** ((-8 / heads) * (h + 1)) * share);
  const of = (begin: number): Columns => ({ begin, heads, stride: 3 * headDim, dims: headDim });
  const part: Recurrence = {
    ...PLAIN,
    kind: 'recurrence',
    rule: 'decay',
    projections: [
      linear(block, `${name}qkv_proj`, hidden, 3 * width, false),
      linear(block, `${name}output_gate`, hidden, width, false),
    ],
    row: [of(0), of(headDim), of(2 * headDim)],
    // no convolution: SiLU of each value
    conv: {
      channels: 3 * width,
      taps: 1,
      weight: { tensors: [{ fill: 1, count: 3 * width }] },
      silu: true,
    },
    heads,
    dim: headDim,
    states: headDim,
    share: 1,
    x: 2 * width,
    b: width,
    c: 0,
    times: [],
    constants: {
      tensors: [
        ...slopes.map((slope) => ({ fill: -slope, count: 1 })),
        { fill: 0, count: heads },
        { fill: 0, count: heads },
      ],
    },
    gate: { columns: columns(3 * width, width), by: 'sigmoid', first: false },
    norm: { norm: { ...makeNorm(block, `${name}norm`, width), epsilon: 1e-6 } },
    output: linear(block, `${name}out_proj`, width, hidden, false),
  };
  return [{ name: 'lightning', part }];
};
