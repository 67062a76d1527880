import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { encodeText, openSample } from '../evaluate/sample.test.fixture';
import { parseModelConfig } from '../formats/model-config';
import { resolveArchitecture } from '../models/resolution';
import { readTensors } from './golden.test.fixture';
import { openRunner } from './runner';
import { sourceOf } from './runner.test.cases';

const read = (model: string) =>
  readTensors(new Uint8Array(readFileSync(`public/samples/${model}/model.safetensors`)));
const base = read('base');
const tuned = read('workshop');
const architecture = resolveArchitecture(
  parseModelConfig(readFileSync('public/samples/base/config.json', 'utf8'), 'config.json'),
);
const ids = encodeText('Job: fit a new lock to the shed door');
const sequence = { ids, from: 4 };

/** Σ ln p of the text by a whole model of these tensors. */
async function logProbability(tensors: ReturnType<typeof read>) {
  const runner = openRunner(createCpuBackend(), architecture, sourceOf(tensors));
  const { losses } = await runner.pass({ sequences: [sequence], output: 'loss' });
  runner.close();
  return -losses[0]!.reduce((a, b) => a + b, 0);
}

describe('effects of weights', () => {
  test('are those of whole models that lack one change each', async () => {
    const runner = openSample('workshop', { residentBytes: 1e9 });
    const effects: { name: string; effect: number }[] = [];
    const all = await runner.weightEffects({
      sequence,
      others: sourceOf(base),
      onEffect: (name, effect, of) => {
        effects.push({ name, effect });
        expect(of).toBe(42);
      },
    });
    runner.close();
    expect(effects).toHaveLength(42);
    const whole = await logProbability(tuned);
    expect(all).toBeCloseTo(whole, 4);
    for (const { name, effect } of effects) {
      const without = await logProbability(new Map([...tuned, [name, base.get(name)!]]));
      expect(effect, name).toBeCloseTo(whole - without, 4);
    }
    expect(Math.max(...effects.map(({ effect }) => Math.abs(effect)))).toBeGreaterThan(0.1);
  });
});
