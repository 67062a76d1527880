/**
 * Time of a plan over many tensors: makes a base and two models of the shape of Qwen3-MoE with right headers and no data
 * (sparse files), plans `ties` by the command, and prints processor time and the clock of every attempt.
 *
 *     npx tsx e2e/bench/plan.ts [--layers 100] [--experts 332] [--times 3]
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildSafetensorsHeader, sortForFile } from '../../src/formats/safetensors-write';
import { timeNode } from './processes';

const { values } = parseArgs({
  options: {
    layers: { type: 'string', default: '100' },
    experts: { type: 'string', default: '332' },
    times: { type: 'string', default: '3' },
  },
});
const layers = Number(values.layers);
const experts = Number(values.experts);
const HIDDEN = 256;
const EXPERT = 128;
const VOCABULARY = 512;
const SHARD_LAYERS = 10;

const CONFIG = {
  model_type: 'qwen3_moe',
  architectures: ['Qwen3MoeForCausalLM'],
  hidden_size: HIDDEN,
  num_hidden_layers: layers,
  num_experts: experts,
  num_experts_per_tok: 8,
  moe_intermediate_size: EXPERT,
  intermediate_size: EXPERT,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 64,
  vocab_size: VOCABULARY,
  tie_word_embeddings: true,
  torch_dtype: 'bfloat16',
};

/** Tensors of one layer of a mixture of experts. */
function layerShapes(i: number): [string, number[]][] {
  const at = `model.layers.${i}`;
  return [
    [`${at}.input_layernorm.weight`, [HIDDEN]],
    [`${at}.post_attention_layernorm.weight`, [HIDDEN]],
    [`${at}.self_attn.q_proj.weight`, [256, HIDDEN]],
    [`${at}.self_attn.k_proj.weight`, [128, HIDDEN]],
    [`${at}.self_attn.v_proj.weight`, [128, HIDDEN]],
    [`${at}.self_attn.o_proj.weight`, [HIDDEN, 256]],
    [`${at}.mlp.gate.weight`, [experts, HIDDEN]],
    ...Array.from({ length: experts }, (_, e) => `${at}.mlp.experts.${e}`).flatMap(
      (expert): [string, number[]][] => [
        [`${expert}.gate_proj.weight`, [EXPERT, HIDDEN]],
        [`${expert}.up_proj.weight`, [EXPERT, HIDDEN]],
        [`${expert}.down_proj.weight`, [HIDDEN, EXPERT]],
      ],
    ),
  ];
}

/** Writes a model in shards. @returns how many tensors it has */
async function writeModel(folder: string): Promise<number> {
  mkdirSync(folder);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(CONFIG));
  const shards = Math.ceil(layers / SHARD_LAYERS);
  const weightMap: Record<string, string> = {};
  for (let s = 0; s < shards; s++) {
    const own = Array.from({ length: Math.min(SHARD_LAYERS, layers - s * SHARD_LAYERS) }, (_, i) =>
      layerShapes(s * SHARD_LAYERS + i),
    ).flat();
    if (s === 0) {
      own.push(['model.embed_tokens.weight', [VOCABULARY, HIDDEN]], ['model.norm.weight', [HIDDEN]]);
    }
    const name = `model-${`${s + 1}`.padStart(5, '0')}-of-${`${shards}`.padStart(5, '0')}.safetensors`;
    for (const [tensor] of own) weightMap[tensor] = name;
    const entries = sortForFile(
      own.map(([tensor, shape]) => ({
        ...{ name: tensor, dtype: 'BF16' as const, shape },
        byteLength: 2 * shape.reduce((a, b) => a * b, 1),
      })),
    );
    const header = buildSafetensorsHeader(entries, {});
    const file = await open(join(folder, name), 'w');
    await file.write(header);
    await file.truncate(header.length + entries.reduce((sum, e) => sum + e.byteLength, 0));
    await file.close();
  }
  writeFileSync(
    join(folder, 'model.safetensors.index.json'),
    JSON.stringify({ metadata: { total_size: 0 }, weight_map: weightMap }),
  );
  return Object.keys(weightMap).length;
}

const COMMAND = join(import.meta.dirname, '../../src/cli/amalgam.mjs');
const folder = mkdtempSync(join(tmpdir(), 'amalgam-plan-'));
try {
  let tensors = 0;
  for (const name of ['base', 'a', 'b']) tensors = await writeModel(join(folder, name));
  const models = ['a', 'b'].map(
    (name) => `  - { model: ${name}, parameters: { weight: 0.5, density: 0.2 } }\n`,
  );
  writeFileSync(
    join(folder, 'recipe.yml'),
    `merge_method: ties\nbase_model: base\nmodels:\n${models.join('')}dtype: bfloat16\n`,
  );
  for (let attempt = 1; attempt <= Number(values.times); attempt++) {
    const { seconds, user, system } = await timeNode([COMMAND, 'plan', 'recipe.yml'], folder);
    console.log(
      `${tensors} tensors each, attempt ${attempt}: ${(user + system).toFixed(1)} s of processor time (user ${user.toFixed(1)}, system ${system.toFixed(1)}), ${seconds.toFixed(1)} s by the clock`,
    );
  }
} finally {
  rmSync(folder, { recursive: true });
}
