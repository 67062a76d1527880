/** The sample model with weights of eight bits: what a text loses by them, and when they are taken. */
import { expect, test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import type { RunnerOptions } from '../forward/runner';
import { encodeText, openSample, readText } from './sample.test.fixture';

const open = (model: string, options: RunnerOptions) =>
  openSample(model, options, createCpuBackend(openSharedWeights(0, () => () => undefined)));

async function meanLoss(model: string, options: RunnerOptions) {
  const runner = open(model, options);
  const ids = encodeText(readText('texts/kitchen.eval.txt')).slice(0, 400);
  const { losses } = await runner.pass({ sequences: [{ ids, from: 1 }], output: 'loss' });
  const mean = losses[0]!.reduce((a, b) => a + b, 0) / losses[0]!.length;
  const { encoded, weightBytes } = runner;
  runner.close();
  return { mean, encoded, weightBytes };
}

test.each(['base', 'workshop', 'base+kitchen'])(
  '%s: perplexity changes by less than half a percent',
  async (model) => {
    const stored = await meanLoss(model, { residentBytes: 2 ** 30, weights: 'stored' });
    const eight = await meanLoss(model, { residentBytes: 2 ** 30, weights: '8-bit' });
    expect([stored.encoded, eight.encoded]).toEqual([false, true]);
    expect(eight.mean).not.toBe(stored.mean);
    expect(Math.abs(eight.mean - stored.mean)).toBeLessThan(0.005);
    expect(eight.weightBytes).toBeLessThan(0.65 * stored.weightBytes);
  },
);

test('they are taken to fit where the stored ones would not all stay, and on no engine without them', () => {
  const { weightBytes } = open('base', { residentBytes: 2 ** 30 });
  const fits = open('base', { residentBytes: weightBytes, weights: 'auto' });
  expect([fits.encoded, fits.residentBytes]).toEqual([false, weightBytes]);
  const tight = open('base', { residentBytes: weightBytes - 1, weights: 'auto' });
  expect([tight.encoded, tight.residentBytes]).toEqual([true, tight.weightBytes]);
  expect(openSample('base', { residentBytes: 2 ** 30, weights: '8-bit' }).encoded).toBe(false);
});
