/**
 * A merge of two models of the shapes of one of 8 B parameters, streamed from a fake Hub: nothing of the inputs may be stored, and
 * killed in the middle and resumed it has to give the bytes of a merge that kept them. Prints storage at its peak.
 *
 *     npm run faults:stream -- [--layers 2]        32 are all of 8 B: 16 GB a model
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { JOURNAL } from '../../src/cli/partial-output';
import { formatBytes, formatSeconds } from '../../src/formats/quantity';
import { buildSafetensorsHeader } from '../../src/formats/safetensors-write';
import { startFakeHub } from '../fake-hub';

const root = join(import.meta.dirname, '../..');
const layers = Number(parseArgs({ options: { layers: { type: 'string', default: '2' } } }).values.layers);
const [hidden, ffn, kv, vocabulary] = [4096, 14336, 1024, 32000];
/** What may lie beside the output: small files and the journal. */
const BESIDE = 1e9;
const work = mkdtempSync(join(tmpdir(), 'amalgam-stream-'));

const shapes: [string, number[]][] = [
  ['model.embed_tokens.weight', [vocabulary, hidden]],
  ...Array.from({ length: layers }, (_, i) => `model.layers.${i}`).flatMap((layer): [string, number[]][] => [
    [`${layer}.input_layernorm.weight`, [hidden]],
    [`${layer}.mlp.down_proj.weight`, [hidden, ffn]],
    [`${layer}.mlp.gate_proj.weight`, [ffn, hidden]],
    [`${layer}.mlp.up_proj.weight`, [ffn, hidden]],
    [`${layer}.post_attention_layernorm.weight`, [hidden]],
    [`${layer}.self_attn.k_proj.weight`, [kv, hidden]],
    [`${layer}.self_attn.o_proj.weight`, [hidden, hidden]],
    [`${layer}.self_attn.q_proj.weight`, [hidden, hidden]],
    [`${layer}.self_attn.v_proj.weight`, [kv, hidden]],
  ]),
  ['model.norm.weight', [hidden]],
];

/** A model whose file is holes but for the first numbers of every tensor. */
async function sparseModel(name: string, seed: number): Promise<string> {
  const folder = join(work, name);
  mkdirSync(folder);
  const config = {
    ...{
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      hidden_size: hidden,
      intermediate_size: ffn,
    },
    ...{ num_hidden_layers: layers, num_attention_heads: 32, num_key_value_heads: 8, vocab_size: vocabulary },
    ...{ tie_word_embeddings: true, torch_dtype: 'bfloat16' },
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const tensors = shapes.map(([tensor, shape]) => ({
    ...{ name: tensor, dtype: 'BF16' as const, shape },
    byteLength: 2 * shape.reduce((a, b) => a * b, 1),
  }));
  const header = buildSafetensorsHeader(tensors, { format: 'pt' });
  const file = await open(join(folder, 'model.safetensors'), 'w');
  await file.write(header, 0, header.byteLength, 0);
  let at = header.byteLength;
  for (const [i, { byteLength }] of tensors.entries()) {
    const numbers = Uint16Array.from({ length: 2048 }, (_, j) => 0x3c00 | ((i * 31 + j * 7 + seed) & 0xff));
    await file.write(new Uint8Array(numbers.buffer), 0, numbers.byteLength, at);
    at += byteLength;
  }
  await file.truncate(at);
  await file.close();
  return folder;
}

/** Bytes that a folder takes on the disk. */
function onDisk(folder: string): number {
  if (!existsSync(folder)) return 0;
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    // a file may be renamed meanwhile
    const stats = statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false });
    if (stats?.isFile()) bytes += stats.blocks * 512;
  }
  return bytes;
}

async function sha256(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of createReadStream(file)) hash.update(bytes as Buffer);
  return hash.digest('hex');
}

const models = [];
for (const [seed, name] of ['a', 'b'].entries())
  models.push({ id: `big/${name}`, files: await sparseModel(name, seed) });
const input = statSync(join(work, 'a/model.safetensors')).size;
console.log(`two models of ${formatBytes(input)}, of the shapes of 8 B with ${layers} of its 32 layers`);
const hub = await startFakeHub({ models });
const recipe = join(work, 'recipe.yml');
writeFileSync(
  recipe,
  'merge_method: linear\nmodels:\n- {model: big/a, parameters: {weight: 1}}\n- {model: big/b, parameters: {weight: 0.5}}\namalgam: {shard_bytes: 500000000}\n',
);

/** Runs a merge and looks at what it stores; one that is to be killed is, once a file is whole. */
async function merge(name: string, more: string[], isKilled = false) {
  const place = join(work, 'run', name);
  mkdirSync(place, { recursive: true });
  const args = [
    'merge',
    recipe,
    '--out',
    join(place, 'out'),
    '--hub',
    hub.url,
    '--cache',
    join(place, 'cache'),
  ];
  const begun = performance.now();
  const child = spawn(
    process.execPath,
    ['src/cli/amalgam.mjs', ...args, '--engine', 'cpu', '--quiet', ...more],
    {
      ...{ cwd: root, stdio: ['ignore', 'ignore', 'pipe'] as const },
    },
  );
  const exit = once(child, 'exit') as Promise<[number | null]>;
  const said = text(child.stderr);
  let peak = 0;
  const look = setInterval(() => {
    peak = Math.max(peak, onDisk(place));
    const partial = readdirSync(place).find((each) => each.startsWith('.out'));
    const journal = partial && join(place, partial, JOURNAL);
    if (isKilled && journal && existsSync(journal) && readFileSync(journal, 'utf8').includes('"whole":true'))
      child.kill('SIGKILL');
  }, 100);
  const [code] = await exit;
  clearInterval(look);
  if (code !== (isKilled ? null : 0)) throw new Error(`the merge ${name} ended with ${code}: ${await said}`);
  const seconds = (performance.now() - begun) / 1000;
  peak = Math.max(peak, onDisk(place));
  console.log(
    `${name}${isKilled ? ', killed' : ''}: ${formatSeconds(seconds)}, at most ${formatBytes(peak)} stored`,
  );
  return { peak, out: join(place, 'out') };
}

try {
  const stream = ['--stream', '--resume'];
  const killed = await merge('streamed', stream, true);
  const { peak, out } = await merge('streamed', stream);
  const most = Math.max(peak, killed.peak);
  if (most > input + BESIDE)
    throw new Error(`${formatBytes(most)} were stored, for an output of ${formatBytes(input)}`);
  const kept = await merge('kept', []);
  const files = readdirSync(kept.out).filter((file) => file.endsWith('.safetensors'));
  for (const file of files) {
    if ((await sha256(join(out, file))) !== (await sha256(join(kept.out, file))))
      throw new Error(`${file} differs`);
  }
  console.log(`${files.length} files with the same bytes`);
} finally {
  await hub.close();
  rmSync(work, { recursive: true, force: true });
}
