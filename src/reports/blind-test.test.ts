import { afterEach, expect, test, vi } from 'vitest';
import { type BlindPrompt, binomialInterval, blindOutcome, blindTest } from './blind-test';

afterEach(() => vi.restoreAllMocks());

const SETTINGS = { chat: false, maxTokens: 8, temperature: 0, topP: 1, seed: 0 };
const MODELS = [
  { label: 'base', target: { model: 'base' } },
  { label: 'A', target: { model: 'merge' } },
] as const;

test('the interval is that of R’s binom.test', () => {
  // binom.test(hits, of)$conf.int, R 4.3
  for (const [hits, of, low, high] of [
    [0, 10, 0, 0.3084971],
    [5, 5, 0.4781762, 1],
    [6, 6, 0.5407419, 1],
    [8, 10, 0.4439045, 0.9747893],
    [9, 10, 0.5549839, 0.9974714],
    [3, 10, 0.0667395, 0.6524529],
  ] as const) {
    const interval = binomialInterval(hits, of);
    expect(interval[0]).toBeCloseTo(low, 6);
    expect(interval[1]).toBeCloseTo(high, 6);
  }
  expect(binomialInterval(0, 0)).toEqual([0, 1]);
});

test('the interval holds the true share in 95 of 100 cases and more, whatever it is', () => {
  const choose = (n: number, k: number) => {
    let ways = 1;
    for (let i = 0; i < k; i++) ways *= (n - i) / (i + 1);
    return ways;
  };
  for (let share = 0.01; share < 1; share += 0.01) {
    let held = 0;
    for (let hits = 0; hits <= 10; hits++) {
      const [low, high] = binomialInterval(hits, 10);
      if (low <= share && share <= high)
        held += choose(10, hits) * share ** hits * (1 - share) ** (10 - hits);
    }
    expect(held, `${share}`).toBeGreaterThanOrEqual(0.95);
  }
});

const voted = (...votes: BlindPrompt['vote'][]) => ({
  ...{ at: 0, models: MODELS, settings: SETTINGS },
  prompts: votes.map((vote): BlindPrompt => ({ prompt: 'Job:', answers: ['a', 'b'], first: 0, vote })),
});

test('nobody is preferred inside the interval; votes for neither are left out of it', () => {
  expect(blindOutcome(voted(1, 1, 1, 1, 1, 'neither', 'neither', 0))).toMatchObject({
    wins: [1, 5],
    neither: 2,
    preferred: null,
  });
  expect(blindOutcome(voted(1, 1, 1, 1, 1, 1, 'neither'))).toMatchObject({ wins: [0, 6], preferred: 1 });
  expect(blindOutcome(voted(0, 0, 0, 0, 0, 0)).preferred).toBe(0);
  expect(blindOutcome(voted('neither')).preferred).toBeNull();
});

test('either answer may be first; two that are the same are not asked about', () => {
  vi.spyOn(Math, 'random').mockReturnValueOnce(0.4).mockReturnValueOnce(0.6).mockReturnValueOnce(0.6);
  const about = { at: 0, models: MODELS, settings: SETTINGS };
  const { prompts } = blindTest(
    about,
    ['x', 'y', 'z'],
    [
      ['1', '2', 'same'],
      ['3', '4', 'same'],
    ],
  );
  expect(prompts.map(({ first, vote }) => [first, vote])).toEqual([
    [0, null],
    [1, null],
    [1, 'neither'],
  ]);
  expect(prompts[1]!.answers).toEqual(['2', '4']);
});
