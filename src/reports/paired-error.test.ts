import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type Contender, conclusion, leading } from './conclusion';
import { type LossBlock, lossBlocks, margin, meanLoss, pairedDifference, verdict } from './paired-error';

/** Independent standard normal numbers, by a linear congruence and Box–Muller. */
function normals(seed: number): () => number {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

const series = (length: number, next: () => number) => Array.from({ length }, next);

describe('blocks', () => {
  test('hold every token once; a long text has longer ones, a short one a single one', () => {
    for (const length of [1, 63, 64, 191, 8193, 100_000]) {
      const losses = series(length, normals(length));
      const blocks = lossBlocks(losses);
      expect(blocks.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(length);
      expect(blocks.reduce((sum, { loss }) => sum + loss, 0)).toBeCloseTo(
        losses.reduce((a, b) => a + b, 0),
        6,
      );
      expect(blocks.length).toBeLessThanOrEqual(128);
      expect(blocks.every(({ tokens }) => tokens >= Math.min(length, 64))).toBe(true);
    }
  });

  test('a mean is that of all tokens, every text counting the same, and one block has no error', () => {
    const long = lossBlocks(series(200, () => 1));
    const short = lossBlocks(series(20, () => 3));
    expect(meanLoss([long, short])).toMatchObject({ mean: 2, stderr: null });
    expect(meanLoss([long])).toMatchObject({ mean: 1, stderr: 0 });
    expect(verdict(meanLoss([short]))).toBe('alike');
  });
});

describe('errors', () => {
  test('of independent losses are σ/√n; several texts make them smaller', () => {
    const next = normals(1);
    const text = () => lossBlocks(series(6400, next));
    const one = meanLoss([text()]);
    expect(one.stderr).toBeGreaterThan(0.8 / 80);
    expect(one.stderr).toBeLessThan(1.2 / 80);
    const four = meanLoss([text(), text(), text(), text()]);
    expect(four.stderr! / one.stderr!).toBeGreaterThan(0.4);
    expect(four.stderr! / one.stderr!).toBeLessThan(0.6);
    expect(four.degrees).toBeGreaterThan(3 * one.degrees);
  });

  test('of losses that depend on their neighbors are larger than those of as many independent ones', () => {
    const next = normals(2);
    let last = 0;
    // first order, 0.8: the error of the mean is √((1 + 0.8) / (1 − 0.8)) = 3 times as large
    const losses = series(12_800, () => {
      last = 0.8 * last + 0.6 * next();
      return last;
    });
    const ratio = meanLoss([lossBlocks(losses)]).stderr! * Math.sqrt(12_800);
    expect(ratio).toBeGreaterThan(2.4);
    expect(ratio).toBeLessThan(3.6);
  });

  test('the margin is that of Student: 12.71, 2.571, 2.042 and 1.984 errors', () => {
    const of = (degrees: number) => margin({ mean: 0, stderr: 1, degrees })!;
    expect(of(5)).toBeCloseTo(2.571, 2);
    expect(of(30)).toBeCloseTo(2.042, 3);
    expect(of(100)).toBeCloseTo(1.984, 3);
    expect(of(1)).toBeGreaterThan(9);
    expect(margin({ mean: 0, stderr: null, degrees: 0 })).toBeNull();
  });

  test('of ten and of a hundred comparisons at once it is that of a tenth and a hundredth of the probability', () => {
    const of = (degrees: number, comparisons: number) =>
      margin({ mean: 0, stderr: 1, degrees }, comparisons)!;
    // tables of Student's t: 0.0025 and 0.00025 on each side
    expect(of(1e9, 10)).toBeCloseTo(2.807, 3);
    expect(of(1e9, 100)).toBeCloseTo(3.4808, 3);
    expect(of(30, 10)).toBeCloseTo(3.0298, 2);
  });
});

describe('a difference', () => {
  const next = normals(3);
  const shared = series(3200, () => 2 + 2 * next());
  const of = (by: number) => [lossBlocks(shared.map((loss) => loss + by + 0.1 * next()))];

  test('is told by the same tokens where the means alone would not', () => {
    const [base, better] = [of(0), of(-0.02)];
    const apart = pairedDifference(better, base)!;
    expect(apart.mean).toBeCloseTo(-0.02, 1);
    expect(apart.stderr).toBeLessThan(meanLoss(base).stderr! / 5);
    expect(verdict(apart)).toBe('lower');
    expect(verdict(pairedDifference(base, better))).toBe('higher');
    expect(verdict(pairedDifference(of(0), of(0)))).toBe('alike');
  });

  test('of other tokens there is none, and it is no verdict', () => {
    const other: LossBlock[][] = [lossBlocks(series(3000, () => 1))];
    expect(pairedDifference(of(0), other)).toBeNull();
    expect(pairedDifference(of(0), [])).toBeNull();
    expect(verdict(null)).toBe('alike');
  });
});

/**
 * Losses of the sample's TIES merge (density 0.2, λ 1) minus those of its base, in thousandths, on the first 7 000 tokens of
 * the kitchen, harbour, workshop and common texts for evaluation (`amalgam evaluate --per-token`).
 */
const sample = new Int16Array(new Uint8Array(readFileSync('e2e/fixtures/sample-ties-losses.i16')).buffer);
const TOKENS = 7000;
const texts = [0, 1, 2, 3].map((t) =>
  Array.from(sample.subarray(t * TOKENS, (t + 1) * TOKENS), (d) => d / 1000),
);

describe('a short text and all of it, of the sample', () => {
  /** About 1 500 characters. */
  const SHORT = 400;
  const RESAMPLES = 200;
  const next = normals(7);
  const begin = () => Math.floor(Math.abs(next() * 1e6)) % (TOKENS - SHORT);
  const excerpt = (text: readonly number[]) => {
    const at = begin();
    return lossBlocks(text.slice(at, at + SHORT));
  };
  const wrong = (whole: readonly (readonly number[])[]) => {
    const truth = Math.sign(meanLoss(whole.map((text) => lossBlocks(text))).mean);
    return Array.from({ length: RESAMPLES }, () => verdict(meanLoss(whole.map(excerpt)))).filter(
      (said) => said === (truth < 0 ? 'higher' : 'lower'),
    ).length;
  };

  test('of 200 resamples of four texts 5 % at most have the opposite verdict', () => {
    expect(wrong(texts)).toBeLessThanOrEqual(0.05 * RESAMPLES);
  });

  test('nor have those of single texts, on one of which the two hardly differ', () => {
    const each = texts.map((text) => wrong([text]));
    expect(each.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(0.05 * RESAMPLES * texts.length);
  });

  /** A beginning as it is read: of 21 stretches of 60 tokens one in three, each a text of its own. */
  const beginning = (text: readonly number[]) => {
    const at = Math.floor(Math.abs(next() * 1e6)) % TOKENS;
    const token = (i: number) => text[(at + i) % TOKENS]!;
    return Array.from({ length: 7 }, (_, s) =>
      lossBlocks(Array.from({ length: 60 }, (_, i) => token(180 * s + i))),
    ).flat();
  };

  // losses that a merge adds are skewed, so the verdicts are: few are wrong in its favor
  test('and where there is no difference 5 % at most find the merge better, and 10 % either', () => {
    const none = texts.map((text) => {
      const { mean } = meanLoss([lossBlocks(text)]);
      return text.map((loss) => loss - mean);
    });
    const said = Array.from({ length: 1000 }, () => verdict(meanLoss(none.map(beginning))));
    expect(said.filter((one) => one === 'lower').length).toBeLessThanOrEqual(50);
    expect(said.filter((one) => one !== 'alike').length).toBeLessThanOrEqual(100);
  });

  test('the best of twelve merges that differ from the base in nothing is called better 5 % of the time at most', () => {
    const none = texts.map((text) => {
      const { mean } = meanLoss([lossBlocks(text)]);
      return text.map((loss) => loss - mean);
    });
    const zero = (blocks: readonly LossBlock[]) => blocks.map(({ tokens }) => ({ loss: 0, tokens }));
    const said = Array.from({ length: RESAMPLES }, () => {
      const merges = Array.from({ length: 12 }, (_, i): Contender => {
        return { label: `${i}`, kind: 'merge', texts: none.map(excerpt) };
      });
      const base: Contender = { label: 'base', kind: 'base', texts: merges[0]!.texts.map(zero) };
      const all = [...merges, base];
      const lead = leading(all, undefined);
      const alone = verdict(pairedDifference(lead.leader!.texts, base.texts));
      const field = { ...lead, all, isAccuracy: false, left: 0, scope: '' };
      const { rest } = conclusion(lead.leader!, field);
      return { alone, isBetter: rest.includes('better than the base') };
    });
    expect(said.filter(({ isBetter }) => isBetter).length).toBeLessThanOrEqual(0.05 * RESAMPLES);
    // the interval of one comparison would be wrong far more often: the best was looked for
    expect(said.filter(({ alone }) => alone === 'lower').length).toBeGreaterThan(0.1 * RESAMPLES);
  });

  test('and a large difference is told by four in ten short texts at least', () => {
    const told = Array.from({ length: RESAMPLES }, () => verdict(meanLoss([excerpt(texts[1]!)])));
    const whole = verdict(meanLoss([lossBlocks(texts[1]!)]));
    expect(whole).not.toBe('alike');
    const right = told.filter((said) => said === whole).length;
    expect(right).toBeGreaterThan(0.4 * RESAMPLES);
  });
});
