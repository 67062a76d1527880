/** The sample model with weights of eight bits on the graphics device, against the same on the processor. */
import { expect, test } from 'vitest';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { openSharedWeights } from '../backend/cpu/shared-weights';
import { sharedGpu } from '../backend/kernels/kernels.test.support';
import { GREEDY, generate } from './generation';
import { encodeText, openSample, readText } from './sample.test.fixture';

/** The processor cuts the inputs of a layer to 16 bits; the largest difference of logits, as a share of the largest logit. */
const TOLERANCE = 1e-3;

async function seen(model: string, engine: Backend, rows: number) {
  const runner = openSample(model, { residentBytes: 2 ** 30, weights: '8-bit' }, engine);
  const ids = encodeText(readText('texts/kitchen.eval.txt')).slice(0, rows);
  const { logits } = await runner.pass({ sequences: [{ ids, from: 0 }], output: 'logits' });
  const [written] = await generate(runner, [ids.slice(0, 6)], { maxTokens: 12, sampling: GREEDY });
  const { encoded, weightBytes } = runner;
  runner.close();
  return { logits: logits[0]!, ids: written!.ids, encoded, weightBytes };
}

test.each([
  ['base', 'software', 70],
  ['base+kitchen', 'software', 70],
  ['base+kitchen', 'real', 8],
] as const)(
  '%s, kernels of %s devices: the logits and the text are those of the processor',
  async (model, guise, rows) => {
    const cpu = await seen(model, createCpuBackend(openSharedWeights(0, () => () => undefined)), rows);
    const gpu = await seen(model, await sharedGpu(guise), rows);
    expect([cpu.encoded, gpu.encoded]).toEqual([true, true]);
    expect(gpu.ids).toEqual(cpu.ids);
    const largest = cpu.logits.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    const worst = cpu.logits.reduce((most, v, i) => Math.max(most, Math.abs(v - gpu.logits[i]!)), 0);
    expect(worst / largest).toBeLessThan(TOLERANCE);
    expect(gpu.weightBytes / cpu.weightBytes).toBeCloseTo(36 / 34, 1);
  },
);
