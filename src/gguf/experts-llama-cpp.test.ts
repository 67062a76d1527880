/** Models of experts in llama.cpp: the same log probabilities as here, experts stacked. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { hasLlama, llama, logProbabilities } from '../../e2e/llama-cpp';
import { ggufInNode, mergeInNode, planInNode } from '../../e2e/merge-in-node';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseModelConfig } from '../formats/model-config';
import { buildSafetensorsHeader } from '../formats/safetensors-write';
import type { FileTensor } from '../forward/golden.test.fixture';
import { openRunner } from '../forward/runner';
import { ROOMY, sourceOf } from '../forward/runner.test.cases';
import { memoryFolder } from '../inputs/memory-models.test.support';
import { expectedTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import { ggufEncoder, ggufFile } from './gguf-file';
import { planGguf } from './gguf-plan';
import { readGguf } from './read-gguf.test.support';
import { byteLevelTokenizer } from './tokenizer.test.support';

const scratch = mkdtempSync(join(tmpdir(), 'amalgam-gguf-experts-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const sizes = {
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 4,
  vocab_size: 64,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  num_experts_per_tok: 2,
  tie_word_embeddings: false,
};
const CONFIGS: Record<string, Record<string, unknown>> = {
  mixtral: { num_local_experts: 5, num_key_value_heads: 2 },
  qwen2_moe: { num_experts: 5, moe_intermediate_size: 16, shared_expert_intermediate_size: 24 },
  qwen3_moe: { num_experts: 5, moe_intermediate_size: 16, norm_topk_prob: true, head_dim: 8 },
  olmoe: { num_experts: 5 },
  granitemoe: {
    num_local_experts: 5,
    num_key_value_heads: 2,
    attention_multiplier: 0.3,
    embedding_multiplier: 3,
    residual_multiplier: 0.4,
    logits_scaling: 2,
  },
  gpt_oss: {
    ...{ num_local_experts: 5, num_key_value_heads: 2, head_dim: 8, num_hidden_layers: 4, sliding_window: 4 },
    attention_bias: true,
    layer_types: ['sliding_attention', 'full_attention', 'sliding_attention', 'full_attention'],
  },
};
const FULL = Array.from({ length: 4 }, () => 'full_attention');
const configOf = (type: string, more: Record<string, unknown> = {}) =>
  JSON.stringify({ model_type: type, ...sizes, ...CONFIGS[type], ...more });

function noise(text: string): Map<string, FileTensor> {
  const architecture = resolveArchitecture(parseModelConfig(text, 'config.json'));
  let state = 1;
  const draw = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  return new Map(
    expectedTensors(architecture).map(({ name, shape }) => {
      const size = shape.reduce((a, b) => a * b, 1);
      const values = Float32Array.from({ length: size }, () => (shape.length === 1 ? 1 + draw() : draw()));
      return [name, { dtype: 'F32', shape: [...shape], bytes: new Uint8Array(values.buffer) }];
    }),
  );
}

function planned(text: string, weights: ReadonlyMap<string, FileTensor>) {
  const { vocab } = resolveArchitecture(parseModelConfig(text, 'config.json'));
  return planGguf({
    ...{ type: 'F32', name: 'noise', config: text },
    tokenizer: { tokenizer: byteLevelTokenizer(vocab) },
    tensors: [...weights].map(([name, { shape }]) => ({ name, shape, dtype: 'F32' })),
  });
}

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('experts', () => {
  test.each(Object.keys(CONFIGS))('%s', async (type) => {
    const text = configOf(type);
    const weights = noise(text);
    const plan = planned(text, weights);
    const order = [...plan.tensors.keys()];
    const file = ggufFile('m.gguf', plan, order);
    const parts: Uint8Array[] = [file.header];
    const write = async (bytes: Uint8Array) => void parts.push(bytes.slice());
    const encoder = ggufEncoder({ plan, names: order, engines: [createCpuBackend()], write });
    for (const name of order) {
      await encoder.append(weights.get(name)!.bytes.slice());
      await encoder.finishTensor();
    }
    const bytes = Buffer.concat(parts);
    expect(bytes.length).toBe(file.byteLength);
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
  const text = configOf('qwen3_moe');
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
    const text = configOf('gpt_oss', { rope_parameters: { ...rope, truncate } });
    return planned(text, noise(text)).warnings.map(({ message }) => message);
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
    const text = configOf(type, more);
    expect(() => planned(text, noise(text))).toThrow(message);
  });
});
