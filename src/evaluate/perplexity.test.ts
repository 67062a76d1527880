import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { GOLDEN_NAMES, loadGolden } from '../forward/golden.test.fixture';
import { openRunner } from '../forward/runner';
import { sourceOf, TIGHT } from '../forward/runner.test.cases';
import { resolveArchitecture } from '../models/resolution';
import type { EvaluateProgress } from './grouped-passes';
import { cutWindows, DEFAULT_PROTOCOL, evaluate, startEvaluation } from './perplexity';
import { encodeText, openSample, readText } from './sample.test.fixture';

describe('cutWindows', () => {
  it('300 tokens in windows of 256 by 128', () => {
    expect(cutWindows(300, 256, 128)).toEqual([
      { begin: 0, end: 256, from: 1 },
      { begin: 128, end: 300, from: 128 },
    ]);
    expect(cutWindows(256, 256, 128)).toEqual([{ begin: 0, end: 256, from: 1 }]);
    expect(cutWindows(2, 256, 128)).toEqual([{ begin: 0, end: 2, from: 1 }]);
  });

  it('scores every token but the first exactly once, with something before it in its window', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 400 }),
        fc.integer({ min: 2, max: 60 }),
        fc.nat(),
        (n, window, s) => {
          const stride = 1 + (s % (window - 1));
          const windows = cutWindows(n, window, stride);
          const scored = windows.flatMap(({ begin, end, from }) =>
            Array.from({ length: end - begin - from }, (_, i) => begin + from + i),
          );
          expect(scored).toEqual(Array.from({ length: n - 1 }, (_, i) => i + 1));
          for (const [i, { begin, end, from }] of windows.entries()) {
            expect(begin).toBe(i * stride);
            expect(end).toBe(Math.min(begin + window, n));
            expect(from).toBeGreaterThanOrEqual(1);
          }
          // the last is the first that reaches the end
          expect(windows.findIndex(({ end }) => end === n)).toBe(windows.length - 1);
        },
      ),
    );
  });

  it('without overlap sees every token once, and scores all but the first of each window', () => {
    expect(cutWindows(513, 256, 256)).toEqual([
      { begin: 0, end: 256, from: 1 },
      { begin: 256, end: 512, from: 1 },
    ]);
    expect(cutWindows(514, 256, 256).at(-1)).toEqual({ begin: 512, end: 514, from: 1 });
  });

  it('refuses texts without anything to score, and strides that skip tokens', () => {
    expect(() => cutWindows(0, 256, 128)).toThrow(expect.objectContaining({ code: 'TextEmpty' }));
    expect(() => cutWindows(1, 256, 128)).toThrow(expect.objectContaining({ code: 'TextTooShort' }));
    for (const [window, stride] of [
      [256, 257],
      [256, 0],
      [1, 1],
      [2.5, 1],
      [256, Number.NaN],
    ] as const) {
      expect(() => cutWindows(300, window, stride)).toThrow(expect.objectContaining({ code: 'Usage' }));
    }
  });
});

const golden = (name: string) => loadGolden(name, async (path) => new Uint8Array(readFileSync(path)));
const short = (text: string, bytes: number) => {
  const cut = readText(`texts/${text}.eval.txt`).slice(0, bytes);
  return { ids: encodeText(cut), bos: 0, bytes: cut.length };
};

describe('perplexity', () => {
  it('of the base on the common text is the published one', async () => {
    const expected = JSON.parse(readText('expected.json')) as {
      perplexity: Record<string, Record<string, number>>;
      negative_log_likelihood: Record<string, Record<string, number>>;
      texts: Record<string, { tokens_scored: number; bytes: number }>;
    };
    const text = readText('texts/common.eval.txt');
    const bytes = new TextEncoder().encode(text).length;
    const report = await evaluate(
      openSample('base'),
      { ids: encodeText(text), bos: 0, bytes },
      DEFAULT_PROTOCOL,
    );
    const nll = expected.negative_log_likelihood.base!.common!;
    expect(report.tokens).toBe(expected.texts.common!.tokens_scored);
    expect(Math.abs(report.perplexity / expected.perplexity.base!.common! - 1)).toBeLessThan(1e-5);
    expect(Math.abs(report.meanNll / (nll / report.tokens) - 1)).toBeLessThan(1e-5);
    expect(report.bitsPerByte).toBeCloseTo(nll / Math.LN2 / expected.texts.common!.bytes, 5);
    expect(report.protocol).toEqual({ window: 256, stride: 128, bos: 0 });
    expect(report.perToken).toBeUndefined();
  }, 300_000);

  it.each(GOLDEN_NAMES)('of the golden %s in one window', async (name) => {
    const { config, weights, ids, info } = await golden(name);
    const runner = openRunner(createCpuBackend(), resolveArchitecture(config), sourceOf(weights));
    const report = await evaluate(
      runner,
      { ids, bos: null },
      { window: 128, stride: 64 },
      { perToken: true },
    );
    expect(Math.abs(report.perplexity / info.perplexity - 1)).toBeLessThan(info.tolerances.perplexity_rel);
    expect(report.bitsPerByte).toBeNull();
    expect(report.perToken!.length).toBe(ids.length - 1);
    const mean = report.perToken!.reduce((a, b) => a + b, 0) / report.tokens;
    expect(mean).toBeCloseTo(report.meanNll, 12);
  });

  it('does not depend on how windows are grouped', async () => {
    const input = short('harbour', 400);
    const protocol = { window: 48, stride: 20 };
    const whole = await evaluate(openSample('workshop'), input, protocol, { perToken: true });
    const parts = await evaluate(openSample('workshop', TIGHT), input, protocol, { perToken: true });
    const worst = whole.perToken!.reduce((m, v, i) => Math.max(m, Math.abs(v - parts.perToken![i]!)), 0);
    // the head is cut differently, and with it the order of its sums
    expect(worst).toBeLessThan(1e-6);
    expect(parts.peakBytes).toBeLessThan(whole.peakBytes);
  });

  it('of an adapter falls on its own domain and rises elsewhere', async () => {
    const on = async (model: string, text: string) =>
      (await evaluate(openSample(model), short(text, 600), DEFAULT_PROTOCOL)).perplexity;
    expect(await on('base+kitchen', 'kitchen')).toBeLessThan(0.9 * (await on('base', 'kitchen')));
    expect(await on('base+harbour', 'kitchen')).toBeGreaterThan(await on('base', 'kitchen'));
  });

  it('of several models layer by layer is that of each alone', async () => {
    const input = short('kitchen', 300);
    const protocol = { window: 64, stride: 32 };
    const engine = createCpuBackend();
    const runners = ['base', 'base+kitchen', 'workshop'].map((m) => openSample(m, {}, engine));
    const together = runners.map((runner) => startEvaluation(runner, [input], protocol));
    for (let more = true; more; ) {
      more = false;
      for (const evaluation of together) more = (await evaluation.step()) || more;
    }
    for (const [i, runner] of runners.entries()) {
      const alone = await evaluate(runner, input, protocol);
      expect(together[i]!.reports()[0]!.meanNll).toBe(alone.meanNll);
    }
  });

  it('tells its progress, and stops when asked', async () => {
    const input = short('kitchen', 400);
    const seen: EvaluateProgress[] = [];
    await evaluate(
      openSample('base', TIGHT),
      input,
      { window: 64, stride: 32 },
      { onProgress: (p) => seen.push(p) },
    );
    expect(seen.map((p) => p.tokensDone)).toEqual(seen.map((p) => p.tokensDone).toSorted((a, b) => a - b));
    expect(seen.at(-1)).toMatchObject({ tokensDone: seen[0]!.tokens, secondsLeft: 0 });
    const stop = new AbortController();
    const stopped = evaluate(
      openSample('base', TIGHT),
      input,
      { window: 64, stride: 32 },
      { onProgress: () => stop.abort(), signal: stop.signal },
    );
    await expect(stopped).rejects.toMatchObject({ code: 'Canceled' });
  });

  it('is refused for what cannot be scored', async () => {
    const runner = openSample('base');
    const on = (ids: number[]) => evaluate(runner, { ids, bos: null }, DEFAULT_PROTOCOL);
    await expect(on([])).rejects.toMatchObject({ code: 'TextEmpty' });
    await expect(on([5])).rejects.toMatchObject({ code: 'TextTooShort' });
    await expect(on([5, 1024])).rejects.toMatchObject({ code: 'TokenOutOfRange' });
    const { config, weights } = await golden('gpt2');
    const limited = openRunner(createCpuBackend(), resolveArchitecture(config), sourceOf(weights));
    const long = { ids: Array.from({ length: 100 }, (_, i) => i), bos: null };
    await expect(evaluate(limited, long, DEFAULT_PROTOCOL)).rejects.toMatchObject({ code: 'ContextTooLong' });
    expect((await evaluate(limited, long, { window: 72, stride: 36 })).tokens).toBe(99);
  });
});
