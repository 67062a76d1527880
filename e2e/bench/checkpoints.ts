/** Checkpoints of real shapes with seeded values: a base with bell-shaped BF16 weights, fine-tunes of it, and LoRA adapters. */
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { f32ToBf16 } from '../../src/formats/half';
import { buildSafetensorsHeader } from '../../src/formats/safetensors-write';
import { buildShardIndex } from '../../src/formats/shard-index';

export interface Shape {
  name: string;
  layers: number;
  hidden: number;
  ffn: number;
  vocabulary: number;
  heads: number;
  keyHeads: number;
  headDim: number;
  family: 'qwen2' | 'llama';
}

/** Qwen2.5-0.5B: 494 M parameters. */
export const QWEN_05B: Shape = {
  name: 'qwen-0.5b',
  layers: 24,
  hidden: 896,
  ffn: 4864,
  vocabulary: 151_936,
  heads: 14,
  keyHeads: 2,
  headDim: 64,
  family: 'qwen2',
};

/** The same with 2 layers and a small vocabulary: 38 M parameters, for runs before and after a change. */
export const QWEN_SLICE: Shape = { ...QWEN_05B, name: 'qwen-slice', layers: 2, vocabulary: 9496 };

/** Llama-3.2-1B: 1.24 G parameters. */
export const LLAMA_1B: Shape = {
  name: 'llama-1.2b',
  layers: 16,
  hidden: 2048,
  ffn: 8192,
  vocabulary: 128_256,
  heads: 32,
  keyHeads: 8,
  headDim: 64,
  family: 'llama',
};

/** Llama-3.2-3B: 3.2 G parameters. */
export const LLAMA_3B: Shape = {
  name: 'llama-3b',
  layers: 28,
  hidden: 3072,
  ffn: 8192,
  vocabulary: 128_256,
  heads: 24,
  keyHeads: 8,
  headDim: 128,
  family: 'llama',
};

/** The linear modules of a layer with [out, in]. */
function linears(shape: Shape): [module: string, rows: number, cols: number][] {
  const q = shape.heads * shape.headDim;
  const kv = shape.keyHeads * shape.headDim;
  return [
    ['mlp.down_proj', shape.hidden, shape.ffn],
    ['mlp.gate_proj', shape.ffn, shape.hidden],
    ['mlp.up_proj', shape.ffn, shape.hidden],
    ['self_attn.k_proj', kv, shape.hidden],
    ['self_attn.o_proj', shape.hidden, q],
    ['self_attn.q_proj', q, shape.hidden],
    ['self_attn.v_proj', kv, shape.hidden],
  ];
}

/** Elements of all linear modules. */
function linearElements(shape: Shape): number {
  return shape.layers * linears(shape).reduce((sum, [, rows, cols]) => sum + rows * cols, 0);
}

/** Floating point operations of the matrix products that score `tokens` tokens, attention left out. */
export function evaluationFlops(shape: Shape, tokens: number): number {
  return 2 * tokens * (linearElements(shape) + shape.vocabulary * shape.hidden);
}

/**
 * The same for importance without compensation: the linear modules on `tokens` tokens, and half of XᵀX for each of a
 * layer's four inputs.
 */
export function importanceFlops(shape: Shape, tokens: number): number {
  const inputs = [shape.hidden, shape.heads * shape.headDim, shape.hidden, shape.ffn];
  const grams = shape.layers * tokens * inputs.reduce((sum, width) => sum + width ** 2, 0);
  return 2 * tokens * linearElements(shape) + grams;
}

/** Every tensor in the order of its name, as checkpoints on the Hub have them. Tied heads are not stored. */
export function tensorsOf(shape: Shape): [name: string, shape: number[]][] {
  const layer = (i: number): [string, number[]][] => [
    [`model.layers.${i}.input_layernorm.weight`, [shape.hidden]],
    [`model.layers.${i}.post_attention_layernorm.weight`, [shape.hidden]],
    ...linears(shape).flatMap(([module, rows, cols]): [string, number[]][] => [
      ...(shape.family === 'qwen2' && /[qkv]_proj/.test(module)
        ? [[`model.layers.${i}.${module}.bias`, [rows]] as [string, number[]]]
        : []),
      [`model.layers.${i}.${module}.weight`, [rows, cols]],
    ]),
  ];
  const all: [string, number[]][] = [
    ['model.embed_tokens.weight', [shape.vocabulary, shape.hidden]],
    ...Array.from({ length: shape.layers }, (_, i) => layer(i)).flat(),
    ['model.norm.weight', [shape.hidden]],
  ];
  return all.sort(([a], [b]) => (a < b ? -1 : 1));
}

/** `config.json` of the shape. */
export function configOf(shape: Shape): Record<string, unknown> {
  return {
    architectures: [shape.family === 'qwen2' ? 'Qwen2ForCausalLM' : 'LlamaForCausalLM'],
    model_type: shape.family,
    hidden_size: shape.hidden,
    intermediate_size: shape.ffn,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.keyHeads,
    head_dim: shape.headDim,
    num_hidden_layers: shape.layers,
    vocab_size: shape.vocabulary,
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-6,
    rope_theta: 1_000_000,
    hidden_act: 'silu',
    tie_word_embeddings: true,
    torch_dtype: 'bfloat16',
  };
}

/** Values are drawn once; every block of a file starts at a place of its own in them. */
const POOL = 1 << 21;
const BLOCK = 1 << 15;
/** Most bytes of a file. */
const SHARD_BYTES = 3.5e9;
const BASE_SCALE = 0.02;
const CHANGE_SCALE = 0.002;

let pool: Float32Array | undefined;
let basePool: Uint16Array | undefined;

/** Sums of four uniforms: bell-shaped, variance 1. */
function bellPool(): Float32Array {
  let state = 0x9e3779b9;
  const uniform = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  pool ??= Float32Array.from(
    { length: POOL + BLOCK },
    () => (uniform() + uniform() + uniform() + uniform() - 2) * Math.sqrt(3),
  );
  return pool;
}

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

function bf16(value: number): number {
  float[0] = value;
  return f32ToBf16(bits[0]!);
}

/** The pool as BF16 weights of a base. */
function baseValues(): Uint16Array {
  basePool ??= Uint16Array.from(bellPool(), (value) => bf16(value * BASE_SCALE));
  return basePool;
}

/** BF16 of block `block`: base values, and for a fine-tune (model > 0) a change to every one of them. */
function fillBlock(out: Uint16Array, block: number, model: number): void {
  const at = (seed: number) => (Math.imul(block + 1, 0x85ebca6b + 0x27d4eb2f * seed) >>> 0) % POOL;
  const base = at(0);
  out.set(baseValues().subarray(base, base + out.length));
  if (model === 0) return;
  const values = bellPool();
  const change = at(model);
  for (let e = 0; e < out.length; e++) {
    bits[0] = out[e]! << 16;
    out[e] = bf16(float[0]! + values[change + e]! * CHANGE_SCALE);
  }
}

interface Entry {
  name: string;
  dtype: 'BF16';
  shape: number[];
  byteLength: number;
}

async function writeTensors(file: string, entries: Entry[], model: number, firstBlock = 0): Promise<void> {
  const out = await open(`${file}.part`, 'w');
  await out.write(buildSafetensorsHeader(entries, { format: 'pt' }));
  const total = entries.reduce((sum, e) => sum + e.byteLength, 0) / 2;
  const piece = new Uint16Array(BLOCK * 256);
  for (let begin = 0; begin < total; begin += piece.length) {
    const n = Math.min(piece.length, total - begin);
    for (let at = 0; at < n; at += BLOCK) {
      const block = firstBlock + (begin + at) / BLOCK;
      fillBlock(piece.subarray(at, Math.min(at + BLOCK, n)), block, model);
    }
    await out.write(new Uint8Array(piece.buffer, 0, n * 2));
  }
  await out.close();
  renameSync(`${file}.part`, file);
}

const entry = (name: string, shape: number[]): Entry => ({
  name,
  dtype: 'BF16',
  shape,
  byteLength: 2 * shape.reduce((a, b) => a * b, 1),
});

/** Makes the checkpoint unless it is there: model 0 is the base, others are its fine-tunes. Returns its folder. */
export async function checkpoint(cache: string, shape: Shape, model: number): Promise<string> {
  const folder = join(cache, `${shape.name}-${model === 0 ? 'base' : `tuned-${model}`}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(configOf(shape)));
  const shards = cutShards(tensorsOf(shape).map(([name, dims]) => entry(name, dims)));
  const of = String(shards.length).padStart(5, '0');
  const nameOf = (i: number) =>
    shards.length === 1
      ? 'model.safetensors'
      : `model-${String(i + 1).padStart(5, '0')}-of-${of}.safetensors`;
  if (shards.length > 1) {
    const weights = shards.flatMap((entries, i) => entries.map(({ name }) => [name, nameOf(i)] as const));
    writeFileSync(
      join(folder, 'model.safetensors.index.json'),
      buildShardIndex(weights, bytesOf(shards.flat())),
    );
  }
  let block = 0;
  for (const [i, entries] of shards.entries()) {
    const file = join(folder, nameOf(i));
    if (!existsSync(file)) await writeTensors(file, entries, model, block);
    block += Math.ceil(bytesOf(entries) / 2 / BLOCK);
  }
  return folder;
}

const bytesOf = (entries: readonly Entry[]) => entries.reduce((sum, { byteLength }) => sum + byteLength, 0);

/** Shards as large models have them. Node 20 takes a file of 4 GiB or more for a shorter one (`openAsBlob`). */
function cutShards(entries: readonly Entry[]): Entry[][] {
  const shards: Entry[][] = [[]];
  for (const e of entries) {
    if (bytesOf(shards.at(-1)!) + e.byteLength > SHARD_BYTES) shards.push([]);
    shards.at(-1)!.push(e);
  }
  return shards;
}

/** Makes a LoRA adapter on all linear modules unless it is there. Returns its folder. */
export async function adapter(cache: string, shape: Shape, rank: number, number: number): Promise<string> {
  const folder = join(cache, `${shape.name}-lora-${rank}-${number}`);
  mkdirSync(folder, { recursive: true });
  const config = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    r: rank,
    lora_alpha: 2 * rank,
    target_modules: linears(shape).map(([module]) => module.split('.').at(-1)),
    bias: 'none',
    fan_in_fan_out: false,
  };
  writeFileSync(join(folder, 'adapter_config.json'), JSON.stringify(config));
  const file = join(folder, 'adapter_model.safetensors');
  const entries = Array.from({ length: shape.layers }, (_, layer) =>
    linears(shape).flatMap(([module, rows, cols]) => [
      entry(`base_model.model.model.layers.${layer}.${module}.lora_A.weight`, [rank, cols]),
      entry(`base_model.model.model.layers.${layer}.${module}.lora_B.weight`, [rows, rank]),
    ]),
  ).flat();
  if (!existsSync(file)) await writeTensors(file, entries, 100 + number);
  return folder;
}
