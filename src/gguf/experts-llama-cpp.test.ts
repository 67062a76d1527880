/** Models of experts in llama.cpp: the same log probabilities as here, experts stacked. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { hasLlama, llama, logProbabilities } from '../../e2e/llama-cpp';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseModelConfig } from '../formats/model-config';
import type { FileTensor } from '../forward/golden.test.fixture';
import { openRunner } from '../forward/runner';
import { ROOMY, sourceOf } from '../forward/runner.test.cases';
import { expectedTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolve';
import { byteLevelTokenizer } from './byte-tokenizer.test.support';
import { ggufEncoder, ggufFile } from './gguf-file';
import { planGguf } from './gguf-plan';

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
};
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

describe('experts that llama.cpp routes otherwise are refused', () => {
  test.each([
    ['shares that do not sum to 1', 'qwen3_moe', { norm_topk_prob: false }, /do not sum to 1/],
    ['fewer keys than queries', 'olmoe', { num_key_value_heads: 2 }, /fewer heads of keys/],
    ['layers without experts', 'qwen3_moe', { mlp_only_layers: [0] }, /an MLP without experts in layer 0/],
  ])('%s', (_, type, more, message) => {
    const text = configOf(type, more);
    expect(() => planned(text, noise(text))).toThrow(message);
  });
});
