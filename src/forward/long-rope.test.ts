import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { GREEDY, generate } from '../evaluate/generation';
import { parseModelConfig } from '../formats/model-config';
import { argmax } from '../linalg/numbers';
import { type Architecture, partOf } from '../models/architecture';
import { resolveArchitecture } from '../models/resolution';
import { inverseFrequencies, ropeTables } from '../models/rope';
import { deviation, goldenWeights, loadGolden } from './golden.test.fixture';
import { runOracle } from './oracle';
import { LLAMA_CONFIG, LONG, withRope as withRopeOf, YARN } from './rope.test.fixture';
import { openRunner } from './runner';
import { sourceOf, TIGHT } from './runner.test.cases';

const golden = await loadGolden('llama', async (path) => new Uint8Array(readFileSync(path)));
const plain = readFileSync(LLAMA_CONFIG, 'utf8');
const withRope = (rope: object, more: object = {}) => withRopeOf(plain, rope, more);
const ropeOf = (rope: object, more: object = {}) =>
  partOf(withRope(rope, more).blocks[0]!, 'attention')!.rope!;

describe('yarn', () => {
  it('blends by how often a pair turns within the original positions: worked out by hand', () => {
    // θ 10⁴, 8 dimensions, 64 positions: 32 turns at pair −0.497 → 0, one turn at pair 1.008 → 2; ramp 0, ½, 1, 1
    const rope = ropeOf(YARN);
    expect(rope.dims).toBe(8);
    expect([...inverseFrequencies(rope)]).toEqual(
      [1, 0.1 * (0.5 + 0.5 / 4), 0.01 / 4, 0.001 / 4].map((x) => expect.closeTo(x, 15)),
    );
    // cos and sin are scaled by 0.1 · ln 4 + 1
    expect(ropeTables(rope, 0, 1).cos[0]).toBeCloseTo(1.1386294361119891, 14);
    expect(ropeTables(rope, 0, 1).sin[0]).toBe(0);
  });

  it('takes its optional numbers as transformers does', () => {
    const scaling = (more: object, top = {}) => ropeOf({ ...YARN, ...more }, top).scaling;
    expect(scaling({ attention_factor: 1.5 })).toMatchObject({ attention: 1.5 });
    // deepseek: 0.1 · m · ln 4 + 1, the one over the other
    expect(scaling({ mscale: 1, mscale_all_dim: 0.5 })).toMatchObject({
      attention: expect.closeTo((0.1 * Math.log(4) + 1) / (0.05 * Math.log(4) + 1), 14),
    });
    expect(scaling({ factor: undefined }, { max_position_embeddings: 128 })).toMatchObject({ factor: 2 });
    // not truncated, one turn lies at pair 1.008: pair 1 is divided a little less
    const whole = ropeOf({ ...YARN, truncate: false });
    const ramp = 1 / ((8 * Math.log(64 / (2 * Math.PI))) / (2 * Math.log(10_000)));
    expect(inverseFrequencies(whole)[1]).toBeCloseTo(0.1 * (1 - ramp + ramp / 4), 14);
    expect(() => scaling({ beta_fast: 1, beta_slow: 2 })).toThrow(/yarn/);
    expect(() => scaling({ factor: 'four' })).toThrow(/factor/);
  });
});

describe('longrope', () => {
  it('divides each pair by its own factor, of one list or the other: worked out by hand', () => {
    const rope = ropeOf(LONG, { max_position_embeddings: 256 });
    const close = (xs: number[]) => xs.map((x) => expect.closeTo(x, 15));
    expect([...inverseFrequencies(rope, false)]).toEqual(close([1, 0.1, 0.01, 0.001]));
    expect([...inverseFrequencies(rope, true)]).toEqual(close([1, 0.05, 0.0025, 0.000125]));
    // √(1 + ln 16 / ln 16)
    const root = expect.closeTo(Math.SQRT2, 14);
    expect(rope.scaling).toMatchObject({ original: 16, attention: { short: root, long: root } });
  });

  it('takes an attention factor for either list, as PhiMoE has them: worked out by hand', () => {
    const rope = ropeOf({ ...LONG, short_mscale: 1.25, long_mscale: 1.5 }, { max_position_embeddings: 256 });
    // position 3 of the second pair: 0.1 a position on short texts, half of it on long ones
    const [short, long] = [ropeTables(rope, 3, 1, false), ropeTables(rope, 3, 1, true)];
    expect(short.cos[1]).toBeCloseTo(1.25 * 0.955336489125606, 14);
    expect(short.sin[1]).toBeCloseTo(1.25 * 0.29552020666133955, 14);
    expect(long.cos[1]).toBeCloseTo(1.5 * 0.9887710779360422, 14);
    expect(long.sin[1]).toBeCloseTo(1.5 * 0.14943813247359922, 14);
    // one alone: the other list keeps the common factor
    const one = ropeOf({ ...LONG, long_mscale: 1.5 }, { max_position_embeddings: 256 });
    expect(ropeTables(one, 0, 1, false).cos[0]).toBeCloseTo(Math.SQRT2, 14);
    expect(ropeTables(one, 0, 1, true).cos[0]).toBe(1.5);
  });

  it('is refused where its lists do not fit', () => {
    expect(() => ropeOf({ ...LONG, long_factor: [1, 2, 4] })).toThrow(/long_factor/);
    expect(() => ropeOf({ ...LONG, short_factor: [1, 0, 1, 1] })).toThrow(/short_factor/);
  });

  it('generates the same with a cache and without', async () => {
    const architecture = withRope(LONG, { max_position_embeddings: 256 });
    const runner = openRunner(createCpuBackend(), architecture, sourceOf(golden.weights), TIGHT);
    // on one side of the 16 positions or the other from the first token to the last
    for (const [length, tokens] of [
      [4, 12],
      [20, 8],
    ] as const) {
      const ids = golden.ids.slice(0, length);
      const [got] = await generate(runner, [ids], { maxTokens: tokens, sampling: GREEDY });
      const all = [...ids];
      for (let i = 0; i < tokens; i++) {
        const { logits } = await runner.pass({
          sequences: [{ ids: all, from: all.length - 1 }],
          output: 'logits',
        });
        all.push(argmax(logits[0]!));
      }
      expect(got!.ids).toEqual(all.slice(length));
    }
    runner.close();
  });
});

describe('scores of DeepSeek under yarn', () => {
  const base = {
    model_type: 'deepseek_v2',
    hidden_size: 64,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    intermediate_size: 64,
    moe_intermediate_size: 16,
    n_routed_experts: 4,
    num_experts_per_tok: 2,
    q_lora_rank: null,
    kv_lora_rank: 16,
    qk_nope_head_dim: 16,
    qk_rope_head_dim: 8,
    v_head_dim: 16,
    vocab_size: 32,
    rms_norm_eps: 1e-6,
    max_position_embeddings: 163_840,
  };
  const of = (more: object) => {
    const config = parseModelConfig(JSON.stringify({ ...base, ...more }), 'config.json');
    return partOf(resolveArchitecture(config).blocks[0]!, 'attention')!;
  };
  /** DeepSeek-V2-Lite's own number, which is not √½. */
  const MSCALE = 707 / 1000;
  const yarn = {
    rope_theta: 10_000,
    factor: 40,
    mscale: MSCALE,
    mscale_all_dim: MSCALE,
    original_max_position_embeddings: 4096,
  };
  it.each([
    ['rope_scaling', { rope_scaling: { ...yarn, type: 'yarn' } }],
    ['rope_parameters', { rope_parameters: { ...yarn, rope_type: 'yarn' } }],
  ])('grow with mscale_all_dim, in %s: worked out by hand', (_, more) => {
    const { scale, rope } = of(more);
    // 24^−½ · (0.0707 · ln 40 + 1)²
    expect(scale).toBeCloseTo(0.32448108219361155, 14);
    // what cos and sin carry is the quotient of two equal sizes
    expect(rope!.scaling).toMatchObject({ type: 'yarn', attention: 1 });
  });

  it('do not where nothing is scaled, or no weight is given', () => {
    for (const more of [
      {},
      { rope_scaling: null },
      { rope_parameters: { rope_theta: 10_000, rope_type: 'default', mscale_all_dim: 1 } },
      { rope_scaling: { ...yarn, type: 'yarn', mscale_all_dim: 0 } },
    ]) {
      expect(of(more).scale).toBeCloseTo(24 ** -0.5, 14);
    }
  });

  it('stay as they are in a family that does not do so (MiniCPM 3)', () => {
    const scaled = of({ model_type: 'minicpm3', rope_scaling: { ...yarn, type: 'yarn' } });
    expect(scaled.scale).toBeCloseTo(24 ** -0.5, 14);
  });
});

it('dynamic scaling, whose table depends on how far a text has got, is refused by name', () => {
  expect(() => ropeOf({ rope_type: 'dynamic', factor: 2 })).toThrow(/dynamic/);
});

it.each([
  ['yarn', YARN],
  ['longrope', LONG],
] as const)('%s: the runner is the f64 oracle, short and long sequences in one pass', async (_, rope) => {
  const architecture = withRope(rope, { max_position_embeddings: 256 });
  const weights = goldenWeights(architecture, golden.weights);
  const lengths = [10, 40, 16, 17];
  const sequences = lengths.map((length) => ({ ids: golden.ids.slice(0, length), from: 0 }));
  for (const options of [{}, TIGHT]) {
    const runner = openRunner(createCpuBackend(), architecture, sourceOf(golden.weights), options);
    const { logits } = await runner.pass({ sequences, output: 'logits' });
    for (const [i, { ids }] of sequences.entries()) {
      const wanted = runOracle(architecture, weights, ids).logits.flatMap((row) => [...row]);
      expect(deviation(logits[i]!, wanted).relRms).toBeLessThan(2e-6);
    }
    runner.close();
  }
  // scaling matters: without it the logits are others
  const bare = runOracle(withRope({ rope_type: 'default' }), weights, golden.ids.slice(0, 40)).logits;
  const scaled = runOracle(architecture, weights, golden.ids.slice(0, 40)).logits.flatMap((row) => [...row]);
  expect(deviation(scaled, Float64Array.from(bare.flatMap((row) => [...row]))).relRms).toBeGreaterThan(1e-3);
});

it('attention by chunks of positions: the runner is the f64 oracle, whole and in pieces', async () => {
  const base = withRope({ rope_type: 'default' });
  const chunked = (chunk: number): Architecture => ({
    ...base,
    blocks: base.blocks.map((block, i) => ({
      ...block,
      steps: block.steps.map((step) => ({
        ...step,
        branches: step.branches.map((branch) =>
          // as in Llama 4 one layer sees all
          branch.part.kind === 'attention' && i !== 1
            ? { ...branch, part: { ...branch.part, chunk } }
            : branch,
        ),
      })),
    })),
  });
  const ids = golden.ids.slice(0, 40);
  const weights = goldenWeights(base, golden.weights);
  const flat = (rows: ArrayLike<number>[]) => rows.flatMap((row) => Array.from(row));
  for (const chunk of [6, 16]) {
    const architecture = chunked(chunk);
    const wanted = flat(runOracle(architecture, weights, ids).logits);
    for (const options of [{}, TIGHT]) {
      const runner = openRunner(createCpuBackend(), architecture, sourceOf(golden.weights), options);
      const { logits } = await runner.pass({ sequences: [{ ids, from: 0 }], output: 'logits' });
      expect(deviation(logits[0]!, wanted).relRms).toBeLessThan(2e-6);
      const cache = runner.openCache(1, ids.length);
      const cuts = [0, 5, 6, 7, 23, ids.length];
      const pieces: number[] = [];
      for (let i = 0; i + 1 < cuts.length; i++) {
        const [start, end] = [cuts[i]!, cuts[i + 1]!];
        const sequences = [{ ids: ids.slice(start, end), start, from: 0 }];
        const part = await runner.pass({ sequences, output: 'logits', cache });
        pieces.push(...part.logits[0]!);
      }
      expect(deviation(pieces, wanted).relRms).toBeLessThan(2e-6);
      cache.close();
      runner.close();
    }
    expect(deviation(wanted, flat(runOracle(base, weights, ids).logits)).relRms).toBeGreaterThan(1e-2);
  }
});
