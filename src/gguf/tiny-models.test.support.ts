/** A small model of every type that GGUF has, of noise, and the file that is written of it. */
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import type { GgufType } from '../formats/gguf-type';
import { parseModelConfig } from '../formats/model-config';
import type { FileTensor } from '../forward/golden.test.fixture';
import { expectedTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import { ggufEncoder, ggufFile } from './gguf-file';
import { type GgufPlan, planGguf } from './gguf-plan';
import type { TokenizerTexts } from './tokenizer';
import { byteLevelTokenizer } from './tokenizer.test.support';

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
const granite = {
  num_key_value_heads: 2,
  attention_multiplier: 0.3,
  embedding_multiplier: 3,
  residual_multiplier: 0.4,
  logits_scaling: 2,
};
export const EXPERTS: Record<string, Record<string, unknown>> = {
  mixtral: { num_local_experts: 5, num_key_value_heads: 2 },
  qwen2_moe: { num_experts: 5, moe_intermediate_size: 16, shared_expert_intermediate_size: 24 },
  qwen3_moe: { num_experts: 5, moe_intermediate_size: 16, norm_topk_prob: true, head_dim: 8 },
  olmoe: { num_experts: 5 },
  granitemoe: { ...granite, num_local_experts: 5 },
  gpt_oss: {
    ...{ num_local_experts: 5, num_key_value_heads: 2, head_dim: 8, num_hidden_layers: 4, sliding_window: 4 },
    attention_bias: true,
    layer_types: ['sliding_attention', 'full_attention', 'sliding_attention', 'full_attention'],
  },
};
const gemma = { head_dim: 8, num_key_value_heads: 2, tie_word_embeddings: true };

/** What is special about a type; most are llama's sizes. */
export const TINY: Readonly<Record<string, Record<string, unknown>>> = {
  ...EXPERTS,
  granite,
  llama: {
    ...{ head_dim: 16, num_key_value_heads: 2, attention_bias: true, rope_theta: 500_000 },
    rope_scaling: {
      ...{ rope_type: 'llama3', factor: 32, low_freq_factor: 1, high_freq_factor: 4 },
      original_max_position_embeddings: 8192,
    },
  },
  mistral: { num_key_value_heads: 2, head_dim: 16, sliding_window: null },
  qwen2: {
    rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 32 },
    tie_word_embeddings: true,
  },
  qwen3: { head_dim: 16, rope_theta: 1_000_000 },
  phi3: {
    ...{ max_position_embeddings: 128, original_max_position_embeddings: 64, sliding_window: 7 },
    rope_scaling: {
      ...{ rope_type: 'longrope', short_factor: [1, 1.5, 2, 2.5], long_factor: [2, 3, 4, 5] },
      attention_factor: 1.19,
    },
  },
  smollm3: { num_hidden_layers: 5, rope_theta: 2_000_000, tie_word_embeddings: true },
  stablelm: { partial_rotary_factor: 0.25, layer_norm_eps: 1e-6, use_qkv_bias: true },
  gemma,
  gemma2: { ...gemma, query_pre_attn_scalar: 8, sliding_window: 6, final_logit_softcapping: 20 },
  gemma3_text: {
    ...{ ...gemma, query_pre_attn_scalar: 8, sliding_window: 6, num_hidden_layers: 7 },
    rope_scaling: { rope_type: 'linear', factor: 8 },
  },
  starcoder2: { num_key_value_heads: 2, sliding_window: null, norm_epsilon: 1e-6, use_bias: true },
  arcee: { num_key_value_heads: 2 },
  exaone4: { sliding_window: null },
  nemotron: { partial_rotary_factor: 0.5, norm_eps: 1e-6 },
  glm4: { partial_rotary_factor: 0.5, attention_bias: true, num_key_value_heads: 2 },
  seed_oss: { attention_bias: true, num_key_value_heads: 2 },
  gpt2: { tie_word_embeddings: true, max_position_embeddings: 48 },
  gpt_neox: { rotary_pct: 0.5, use_parallel_residual: false, rotary_emb_base: 20_000 },
  bloom: { tie_word_embeddings: true },
};

export const tinyConfig = (type: string, more: Record<string, unknown> = {}) =>
  JSON.stringify({ model_type: type, ...sizes, ...TINY[type], ...more });

export function noise(text: string, seed = 1): Map<string, FileTensor> {
  const architecture = resolveArchitecture(parseModelConfig(text, 'config.json'));
  let state = seed;
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

export function tinyPlan(
  text: string,
  weights: ReadonlyMap<string, FileTensor>,
  type: GgufType = 'F32',
  tokenizer?: TokenizerTexts,
): GgufPlan {
  const { vocab } = resolveArchitecture(parseModelConfig(text, 'config.json'));
  return planGguf({
    ...{ type, name: 'noise', config: text },
    tokenizer: tokenizer ?? { tokenizer: byteLevelTokenizer(vocab) },
    tensors: [...weights].map(([name, { shape }]) => ({ name, shape, dtype: 'F32' })),
  });
}

/** The file of a plan. */
export async function ggufBytes(
  plan: GgufPlan,
  weights: ReadonlyMap<string, FileTensor>,
): Promise<Uint8Array<ArrayBuffer>> {
  const order = [...plan.tensors.keys()];
  const file = ggufFile('m.gguf', plan, order);
  const parts: Uint8Array[] = [file.header];
  const write = async (bytes: Uint8Array) => void parts.push(bytes.slice());
  const encoder = ggufEncoder({ plan, names: order, engines: [createCpuBackend()], write });
  for (const name of order) {
    await encoder.append(weights.get(name)!.bytes.slice());
    await encoder.finishTensor();
  }
  const bytes = Uint8Array.from(Buffer.concat(parts));
  if (bytes.length !== file.byteLength) throw new Error(`${bytes.length} bytes, planned ${file.byteLength}`);
  return bytes;
}
