/**
 * Memory does not grow with the model: merges or compares synthetic 4 GB checkpoints (a LLaMA shape with right headers
 * and sparse data) through the headless command and prints the peak memory above that of planning.
 *
 *     npx tsx e2e/large-checkpoint.ts [--engine cpu|webgpu] [--gigabytes 4] [--method ties | --method compare]
 *
 * Linux only: proportional set sizes are read from /proc.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { buildSafetensorsHeader } from '../src/formats/safetensors-write';
import { watchMemory } from './browser-memory';

const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'cpu' },
    gigabytes: { type: 'string', default: '4' },
    method: { type: 'string', default: 'ties' },
  },
});

const HIDDEN = 2048;
const FFN = 8192;
const VOCABULARY = 128_256;
const LIMIT_BYTES = 2 ** 30;

/** Tensors of a LLaMA shape (hidden 2048, FFN 8192, vocabulary 128 256) with as many layers as fill `bytes` in BF16. */
function llamaShape(bytes: number): { layers: number; tensors: [string, number[]][] } {
  const block = (i: number): [string, number[]][] => [
    [`model.layers.${i}.input_layernorm.weight`, [HIDDEN]],
    [`model.layers.${i}.mlp.down_proj.weight`, [HIDDEN, FFN]],
    [`model.layers.${i}.mlp.gate_proj.weight`, [FFN, HIDDEN]],
    [`model.layers.${i}.mlp.up_proj.weight`, [FFN, HIDDEN]],
    [`model.layers.${i}.post_attention_layernorm.weight`, [HIDDEN]],
    [`model.layers.${i}.self_attn.k_proj.weight`, [512, HIDDEN]],
    [`model.layers.${i}.self_attn.o_proj.weight`, [HIDDEN, HIDDEN]],
    [`model.layers.${i}.self_attn.q_proj.weight`, [HIDDEN, HIDDEN]],
    [`model.layers.${i}.self_attn.v_proj.weight`, [512, HIDDEN]],
  ];
  const size = (tensors: [string, number[]][]) =>
    tensors.reduce((sum, [, shape]) => sum + 2 * shape.reduce((a, b) => a * b, 1), 0);
  const embedding: [string, number[]] = ['model.embed_tokens.weight', [VOCABULARY, HIDDEN]];
  const norm: [string, number[]] = ['model.norm.weight', [HIDDEN]];
  const layers = Math.max(1, Math.round((bytes - size([embedding, norm])) / size(block(0))));
  return { layers, tensors: [embedding, ...Array.from({ length: layers }, (_, i) => block(i)).flat(), norm] };
}

/** A checkpoint whose data is a hole in the file: right in every header, no bytes on the disk. */
async function writeSparse(folder: string, bytes: number): Promise<number> {
  const { layers, tensors } = llamaShape(bytes);
  mkdirSync(folder, { recursive: true });
  const entries = tensors.map(([name, shape]) => ({
    name,
    dtype: 'BF16' as const,
    shape,
    byteLength: 2 * shape.reduce((a, b) => a * b, 1),
  }));
  const header = buildSafetensorsHeader(entries, {});
  const total = header.length + entries.reduce((sum, e) => sum + e.byteLength, 0);
  const file = await open(join(folder, 'model.safetensors'), 'w');
  await file.write(header);
  await file.truncate(total);
  await file.close();
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: HIDDEN,
    intermediate_size: FFN,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    num_hidden_layers: layers,
    vocab_size: VOCABULARY,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: true,
    torch_dtype: 'bfloat16',
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  return total;
}

/** Runs the headless command and returns the peak of its memory. */
async function peakOf(args: string[]): Promise<{ peak: number; seconds: number }> {
  const begin = performance.now();
  const child: ChildProcess = spawn(process.execPath, ['src/cli/amalgam.mjs', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const memory = watchMemory(child.pid!, 200);
  const code = await new Promise((resolve) => child.on('exit', resolve));
  const peak = memory.stop();
  if (code !== 0) throw new Error(`amalgam ${args[0]} ended with ${code}`);
  return { peak, seconds: (performance.now() - begin) / 1000 };
}

const work = mkdtempSync(join(tmpdir(), 'amalgam-large-'));
try {
  const bytes = await writeSparse(join(work, 'base'), Number(options.gigabytes) * 1e9);
  await writeSparse(join(work, 'tuned'), Number(options.gigabytes) * 1e9);
  const recipe = join(work, 'recipe.yml');
  writeFileSync(
    recipe,
    `merge_method: ${options.method === 'compare' ? 'ties' : options.method}\nbase_model: base\nmodels:\n  - model: tuned\n    parameters: { weight: 1.0, density: 0.2 }\n`,
  );
  const idle = await peakOf(['plan', recipe]);
  const [base, tuned, out] = [join(work, 'base'), join(work, 'tuned'), join(work, 'merged')];
  const verb = options.method === 'compare' ? ['compare', base, tuned] : ['merge', recipe];
  const merge = await peakOf([...verb, '--out', out, '--engine', options.engine]);
  const above = merge.peak - idle.peak;
  const written = readdirSync(out)
    .filter((file) => file.endsWith('.safetensors'))
    .reduce((sum, file) => sum + statSync(join(out, file)).size, 0);
  const mib = (n: number) => `${(n / 2 ** 20).toFixed(0)} MiB`;
  console.log(
    `checkpoint ${mib(bytes)}, written ${mib(written)}, ${options.method} on ${options.engine}, ${merge.seconds.toFixed(0)} s`,
  );
  console.log(`memory: planning ${mib(idle.peak)}, ${verb[0]} ${mib(merge.peak)}, above ${mib(above)}`);
  if (above > LIMIT_BYTES) process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
