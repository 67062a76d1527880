/** A model of 20 MB with a LoRA and a fine-tune, all zeros, and texts by them whose memory was stated before. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { diskFolder, SAMPLES } from '../../e2e/disk-folder';
import type { EngineTraits } from '../backend/planned-backend';
import { copyOf } from '../formats/recipe';
import { parseRecipe } from '../formats/recipe-yaml';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import type { KeptWeights, MemoryReport } from '../reports/evaluate';
import { runGeneration } from './generation-job';
import { keepModel } from './kept-model';
import { planMemory } from './memory-plan';

const [HIDDEN, INNER, LAYERS, VOCAB, KEYS, RANK] = [512, 1408, 5, 1024, 256, 16];
const MAPS = {
  ...{ 'self_attn.q_proj': [HIDDEN, HIDDEN], 'self_attn.k_proj': [KEYS, HIDDEN] },
  ...{ 'self_attn.v_proj': [KEYS, HIDDEN], 'self_attn.o_proj': [HIDDEN, HIDDEN] },
  ...{ 'mlp.gate_proj': [INNER, HIDDEN], 'mlp.up_proj': [INNER, HIDDEN], 'mlp.down_proj': [HIDDEN, INNER] },
};
const perLayer = (tensors: (layer: number) => [string, number[]][]) =>
  Object.fromEntries(Array.from({ length: LAYERS }, (_, layer) => tensors(layer)).flat());

/** Zeros, as safetensors. */
function zeros(shapes: Record<string, number[]>, dtype: 'BF16' | 'F32'): Uint8Array {
  let at = 0;
  const header = Object.entries(shapes).map(([name, shape]) => {
    const begin = at;
    at += shape.reduce((a, b) => a * b, dtype === 'F32' ? 4 : 2);
    return [name, { dtype, shape, data_offsets: [begin, at] }];
  });
  const text = new TextEncoder().encode(JSON.stringify(Object.fromEntries(header)));
  const file = new Uint8Array(8 + text.length + at);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  file.set(text, 8);
  return file;
}

function writeModels(): string {
  const folder = mkdtempSync(join(tmpdir(), 'amalgam-memory-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const config = {
    ...{ architectures: ['LlamaForCausalLM'], model_type: 'llama', hidden_act: 'silu', rms_norm_eps: 1e-5 },
    ...{ hidden_size: HIDDEN, intermediate_size: INNER, num_hidden_layers: LAYERS, vocab_size: VOCAB },
    ...{ num_attention_heads: 8, num_key_value_heads: 4, max_position_embeddings: 2048 },
    ...{ rope_theta: 10000, tie_word_embeddings: true, torch_dtype: 'bfloat16' },
  };
  const weights = zeros(
    {
      'model.embed_tokens.weight': [VOCAB, HIDDEN],
      'model.norm.weight': [HIDDEN],
      ...perLayer((layer) => [
        [`model.layers.${layer}.input_layernorm.weight`, [HIDDEN]],
        [`model.layers.${layer}.post_attention_layernorm.weight`, [HIDDEN]],
        ...Object.entries(MAPS).map(([name, shape]): [string, number[]] => [
          `model.layers.${layer}.${name}.weight`,
          shape,
        ]),
      ]),
    },
    'BF16',
  );
  for (const name of ['base', 'tuned']) {
    cpSync(join(SAMPLES, 'base'), join(folder, name), { recursive: true });
    writeFileSync(join(folder, name, 'config.json'), JSON.stringify(config));
    writeFileSync(join(folder, name, 'model.safetensors'), weights);
  }
  mkdirSync(join(folder, 'lora'));
  const adapter = { peft_type: 'LORA', r: RANK, lora_alpha: RANK, base_model_name_or_path: 'base' };
  const settings = { ...adapter, target_modules: Object.keys(MAPS).map((name) => name.split('.')[1]) };
  writeFileSync(join(folder, 'lora/adapter_config.json'), JSON.stringify(settings));
  const factors = perLayer((layer) =>
    Object.entries(MAPS).flatMap(([name, [rows, columns]]): [string, number[]][] => [
      [`base_model.model.model.layers.${layer}.${name}.lora_A.weight`, [RANK, columns!]],
      [`base_model.model.model.layers.${layer}.${name}.lora_B.weight`, [rows!, RANK]],
    ]),
  );
  writeFileSync(join(folder, 'lora/adapter_model.safetensors'), zeros(factors, 'F32'));
  return folder;
}

const signal = new AbortController().signal;
const RECIPES = {
  lora: `merge_method: task_arithmetic
base_model: base
models: [{model: base+lora, parameters: {weight: 1}}]
`,
  ties: `merge_method: ties
base_model: base
models: [{model: tuned, parameters: {weight: 1, density: 0.5}}]
`,
  difference: `merge_method: task_arithmetic
base_model: base
models: [{model: tuned, parameters: {weight: 1}}]
`,
};

export const MEMORY_CASES = [
  ['lora', 'stored'],
  ['lora', '8-bit'],
  ['ties', 'stored'],
  ['difference', 'stored'],
] as const;

/** What is stated of a text with the base asked beside it; then the text is written. */
export async function statedAndWritten(
  recipe: keyof typeof RECIPES,
  weights: KeptWeights,
  engine: EngineTraits,
): Promise<MemoryReport> {
  const folder = writeModels();
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const name of ['base', 'tuned', 'lora'])
    await models.add(await diskFolder(name, join(folder, name)), name);
  const planOf = (of: Parameters<typeof makePlan>[0]) => makePlan(of, (ref) => models.open(ref), methodById);
  const plan = await planOf(parseRecipe(RECIPES[recipe]).recipe!);
  const against = { plan: await planOf(copyOf('base')), exact: true };
  const prompt = 'a '.repeat(12);
  const request = { maxTokens: 3, promptTokens: prompt.length, weights, engine: engine.kind };
  const [merge, base] = [{ recipe: parseRecipe(RECIPES[recipe]).recipe! }, { model: 'base' }];
  const stated = await planMemory(
    { ...request, targets: [base, merge], against: base },
    async (target) => ('model' in target ? against : { plan, exact: false }),
    models,
    engine,
  );
  const kept = keepModel();
  const settings = { prompt, chat: false, temperature: 0.7, topP: 0.9, seed: 0 };
  const report = await runGeneration(
    { target: { model: 'unused' }, ...settings, ...request },
    {
      ...{ plan, models, engine: engine.kind, exact: false, signal, onProgress: () => {}, against },
      liveText: { kept, turn: async () => undefined },
    },
  );
  expect(report.ids.length).toBeGreaterThan(0);
  expect(report.eightBits).toBe(stated.eightBits);
  kept.close();
  return stated;
}
