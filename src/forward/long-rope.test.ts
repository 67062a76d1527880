import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { generate } from '../evaluate/generate';
import { argmax, GREEDY } from '../evaluate/sampler';
import { partOf } from '../models/architecture';
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
    expect(rope.scaling).toMatchObject({ original: 16, attention: expect.closeTo(Math.SQRT2, 14) });
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
        const { logits } = await runner.sweep({
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

it('dynamic scaling, whose table depends on how far a text has got, is refused by name', () => {
  expect(() => ropeOf({ rope_type: 'dynamic', factor: 2 })).toThrow(/dynamic/);
});

it.each([
  ['yarn', YARN],
  ['longrope', LONG],
] as const)('%s: the runner is the f64 oracle, short and long sequences in one sweep', async (_, rope) => {
  const architecture = withRope(rope, { max_position_embeddings: 256 });
  const weights = goldenWeights(architecture, golden.weights);
  const lengths = [10, 40, 16, 17];
  const sequences = lengths.map((length) => ({ ids: golden.ids.slice(0, length), from: 0 }));
  for (const options of [{}, TIGHT]) {
    const runner = openRunner(createCpuBackend(), architecture, sourceOf(golden.weights), options);
    const { logits } = await runner.sweep({ sequences, output: 'logits' });
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
