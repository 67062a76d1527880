/** Tiny encoders of transformers: logits, and losses of masked tokens as the evaluation scores them, on either engine. */
import { expect } from 'vitest';
import type { Backend } from '../backend/backend';
import { parseModelConfig } from '../formats/model-config';
import { ENCODER_FOLDER } from '../forward/families.test.cases';
import { type FileTensor, type ReadFile, readTensors, values } from '../forward/golden.test.fixture';
import { openRunner, type RunnerOptions } from '../forward/runner';
import { ROOMY, sourceOf, TIGHT } from '../forward/runner.test.cases';
import type { Architecture } from '../models/architecture';
import { resolveArchitecture } from '../models/resolution';
import { evaluate } from './perplexity';

/** Mask token of make_forward.py. */
const MASK = 3;

export interface EncoderGolden {
  architecture: Architecture;
  weights: Map<string, FileTensor>;
  ids: number[];
  wanted(key: 'logits' | 'nll' | 'nll_windows'): Float64Array;
}

export async function loadEncoder(name: string, read: ReadFile): Promise<EncoderGolden> {
  const folder = `${ENCODER_FOLDER}/${name}`;
  const text = new TextDecoder().decode(await read(`${folder}/config.json`));
  const golden = readTensors(await read(`${folder}/golden.safetensors`));
  return {
    architecture: resolveArchitecture(parseModelConfig(text, 'config.json'), { masked: true }),
    weights: readTensors(await read(`${folder}/model.safetensors`)),
    ids: [...new Int32Array(golden.get('input_ids')!.bytes.buffer)],
    wanted: (key) => values(golden.get(key)!),
  };
}

/** How far logits stray, as a share of the largest: the sequence behind a shorter one, into which it must not see. */
export async function strayEncoder(
  { weights, ids, wanted }: EncoderGolden,
  engine: Backend,
  options: RunnerOptions,
  architecture: Architecture,
): Promise<number> {
  const runner = openRunner(engine, architecture, sourceOf(weights), options);
  const sequences = [
    { ids: ids.slice(5, 12), from: 0 },
    { ids, from: 0 },
  ];
  const { logits } = await runner.pass({ sequences, output: 'logits' });
  runner.close();
  return farthest(logits[1]!, wanted('logits')) / largest(wanted('logits'));
}

/** Everything a fixture promises, on one engine. */
export async function checkEncoder(name: string, read: ReadFile, engine: Backend): Promise<void> {
  const golden = await loadEncoder(name, read);
  const { architecture, weights, ids, wanted } = golden;
  const input = {
    ids: ids.slice(1, -1),
    bos: ids[0]!,
    masking: { mask: MASK, before: ids.slice(0, 1), after: ids.slice(-1) },
  };
  for (const options of [ROOMY, TIGHT]) {
    expect(await strayEncoder(golden, engine, options, architecture)).toBeLessThan(1e-5);
    const runner = openRunner(engine, architecture, sourceOf(weights), options);
    for (const [protocol, key] of [
      [{ window: ids.length, stride: 1 }, 'nll'],
      [{ window: 20, stride: 9 }, 'nll_windows'],
    ] as const) {
      const report = await evaluate(runner, input, protocol, { perToken: true });
      expect(report.tokens).toBe(ids.length - 2);
      expect(report.protocol).toEqual({ ...protocol, bos: ids[0], masked: 7 });
      expect(farthest(report.perToken!, wanted(key))).toBeLessThan(2e-5);
    }
    runner.close();
  }
}

function farthest(got: ArrayLike<number>, wanted: ArrayLike<number>): number {
  expect(got.length).toBe(wanted.length);
  let far = 0;
  for (let i = 0; i < got.length; i++) {
    const d = Math.abs(got[i]! - wanted[i]!);
    // not Math.max: it must not swallow a NaN
    if (!(d <= far)) far = d;
  }
  return far;
}

function largest(all: ArrayLike<number>): number {
  return Array.from(all).reduce((most, v) => Math.max(most, Math.abs(v)), 0);
}
