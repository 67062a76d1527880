/** Models of experts in llama.cpp: the same log probabilities as here, experts stacked. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { hasLlama, llama, logProbabilities } from '../../e2e/llama-cpp';
import { ggufInNode, mergeInNode, planInNode } from '../../e2e/merge-in-node';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseModelConfig } from '../formats/model-config';
import { buildSafetensorsHeader } from '../formats/safetensors-write';
import { openRunner } from '../forward/runner';
import { ROOMY, sourceOf } from '../forward/runner.test.cases';
import { memoryFolder } from '../inputs/memory-models.test.support';
import { resolveArchitecture } from '../models/resolution';
import { scratchFolder } from '../scratch-folder.test.support';
import { ggufEncoder, ggufFile } from './gguf-file';
import { readGguf } from './read-gguf.test.support';
import { EXPERTS, ggufBytes, noise, tinyConfig, tinyPlan } from './tiny-models.test.support';
import { byteLevelTokenizer } from './tokenizer.test.support';

const scratch = scratchFolder();

const FULL = Array.from({ length: 4 }, () => 'full_attention');

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('experts', () => {
  test.each(Object.keys(EXPERTS))('%s', async (type) => {
    const text = tinyConfig(type);
    const weights = noise(text);
    const bytes = await ggufBytes(tinyPlan(text, weights), weights);
    const path = join(scratch, `${type}.gguf`);
    writeFileSync(path, bytes);
    const architecture = resolveArchitecture(parseModelConfig(text, 'config.json'));
    const ids = [5, 9, 60, 2, 33, 7, 7, 12];
    const runner = openRunner(createCpuBackend(), architecture, sourceOf(weights), ROOMY);
    const { logits } = await runner.pass({ sequences: [{ ids, from: 0 }], output: 'logits' });
    runner.close();
    const expected = logProbabilities(logits[0]!, architecture.vocab);
    const model = llama().open(path);
    try {
      const there = logProbabilities(model.logits(ids), model.vocabulary);
      const far = there.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
      expect(far).toBeLessThan(1e-3);
    } finally {
      model.close();
    }
  });
});

test('beside safetensors experts come in the order of the stacks, and both files hold what each alone does', async () => {
  const text = tinyConfig('qwen3_moe');
  const weights = noise(text);
  const stored = [...weights].map(([name, { shape, bytes }]) => ({
    ...{ name, dtype: 'F32' as const, shape, byteLength: bytes.length, bytes },
  }));
  const folder = memoryFolder('moe', {
    'config.json': JSON.parse(text),
    'tokenizer.json': JSON.parse(byteLevelTokenizer(64)),
    'model.safetensors': Uint8Array.from(
      Buffer.concat([buildSafetensorsHeader(stored, {}), ...stored.map(({ bytes }) => bytes)]),
    ),
  });
  const recipe = (more: string) =>
    `merge_method: passthrough\nmodels: [{model: moe}]\namalgam: {shard_bytes: 20000, ${more}}\n`;
  const alone = await ggufInNode(recipe('gguf: F32, gguf_only: true'), '', { moe: folder });
  const plain = await mergeInNode(recipe('seed: 0'), '', { moe: folder });
  const { plan } = await planInNode(recipe('gguf: F32'), '', { moe: folder });
  const { shards, tensors } = await mergeInNode(recipe('gguf: F32'), '', { moe: folder });
  expect(shards.length).toBeGreaterThan(3);
  expect(new Set(tensors.keys())).toEqual(new Set(plain.tensors.keys()));
  const order = [...tensors.keys()];
  const file = ggufFile('m.gguf', plan.gguf!, order);
  const parts: Uint8Array[] = [file.header];
  const write = async (bytes: Uint8Array) => void parts.push(bytes.slice());
  const encoder = ggufEncoder({ plan: plan.gguf!, names: order, engines: [createCpuBackend()], write });
  for (const [name, { bytes }] of tensors) {
    expect(Buffer.compare(bytes, plain.tensors.get(name)!.bytes), name).toBe(0);
    await encoder.append(bytes.slice() as Uint8Array<ArrayBuffer>);
    await encoder.finishTensor();
  }
  const beside = readGguf(new Uint8Array(Buffer.concat(parts)));
  for (const [name, { shape, bytes }] of readGguf(alone.bytes).tensors) {
    expect([name, beside.tensors.get(name)?.shape]).toEqual([name, shape]);
    expect(Buffer.compare(beside.tensors.get(name)!.bytes, bytes), name).toBe(0);
  }
});

test('a YaRN without rounded bounds is a warning', () => {
  const rope = { rope_type: 'yarn', factor: 32, original_max_position_embeddings: 64, rope_theta: 1e4 };
  const warned = (truncate: boolean) => {
    const text = tinyConfig('gpt_oss', { rope_parameters: { ...rope, truncate } });
    return tinyPlan(text, noise(text)).warnings.map(({ message }) => message);
  };
  expect(warned(true)).toEqual([]);
  expect(warned(false)).toEqual([expect.stringMatching(/bounds of YaRN/)]);
});

describe('experts that llama.cpp routes otherwise are refused', () => {
  test.each([
    ['shares that do not sum to 1', 'qwen3_moe', { norm_topk_prob: false }, /do not sum to 1/],
    ['fewer keys than queries', 'olmoe', { num_key_value_heads: 2 }, /fewer heads of keys/],
    ['layers without experts', 'qwen3_moe', { mlp_only_layers: [0] }, /an MLP without experts in layer 0/],
    ['windows in other layers', 'gpt_oss', { layer_types: FULL }, /layer 0 without a sliding window/],
  ])('%s', (_, type, more, message) => {
    const text = tinyConfig(type, more);
    expect(() => tinyPlan(text, noise(text))).toThrow(message);
  });
});
