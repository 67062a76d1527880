/** Seeded checkpoints: a base with bell-shaped BF16 weights, fine-tunes of it, and LoRA adapters. */
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { f32ToBf16 } from '../../src/formats/half';
import { buildSafetensorsHeader } from '../../src/formats/safetensors-write';
import { buildShardIndex } from '../../src/formats/shard-index';
import { configOf, linears, type Shape, tensorsOf } from './shapes';

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
