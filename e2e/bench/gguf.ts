/**
 * Cost of a GGUF file beside a merge, on the processor: one layer of the shape of Llama-3.2-1B (69 M parameters), whose
 * rows blocks of 256 divide, two fine-tunes, by the command. Seconds, processor time and peak memory of the process without and with each type, then merges that are
 * killed and resumed until they are done, which must end with the same bytes.
 *
 *     npm run bench:gguf -- [--repeat 3] [--kills 6] [--method task_arithmetic]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { GGUF_TYPES } from '../../src/formats/gguf-type';
import { checkpoint } from './checkpoints';
import { timeNode } from './processes';
import { LLAMA_1B } from './shapes';

const root = join(import.meta.dirname, '../..');
const cache = join(root, 'node_modules/.cache/amalgam-bench');
const { values } = parseArgs({
  options: {
    repeat: { type: 'string', default: '3' },
    kills: { type: 'string', default: '6' },
    method: { type: 'string', default: 'task_arithmetic' },
  },
});

const SHAPE = { ...LLAMA_1B, name: 'llama-slice', layers: 1, vocabulary: 4096 };
const scratch = mkdtempSync(join(tmpdir(), 'amalgam-gguf-bench-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));

mkdirSync(cache, { recursive: true });
const folders = [];
for (const model of [0, 1, 2]) folders.push(await checkpoint(cache, SHAPE, model));
const vocabulary = Array.from({ length: SHAPE.vocabulary }, (_, id) => [
  String.fromCodePoint(0x3400 + id),
  id,
]);
writeFileSync(
  join(folders[0]!, 'tokenizer.json'),
  JSON.stringify({
    added_tokens: [],
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
    model: { type: 'BPE', vocab: Object.fromEntries(vocabulary), merges: [] },
  }),
);
const recipe = join(scratch, 'recipe.yml');
writeFileSync(
  recipe,
  `merge_method: ${values.method}
base_model: ${folders[0]}
models:
  - {model: ${folders[1]}, parameters: {weight: 0.5, density: 0.5}}
  - {model: ${folders[2]}, parameters: {weight: 0.5, density: 0.5}}
`,
);

const argumentsOf = (out: string, options: readonly string[]) => [
  ...['src/cli/amalgam.mjs', 'merge', recipe, '--out', out, '--engine', 'cpu'],
  ...options,
];

/** Starts a merge for the test to kill. */
function start(out: string, options: readonly string[]): ChildProcess {
  return spawn(process.execPath, argumentsOf(out, options), {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

/** Ends with the process. @returns its exit code, or null where it was killed */
async function ended(child: ChildProcess): Promise<number | null> {
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  if (code !== null && code !== 0) throw new Error(said);
  return code;
}

let runs = 0;
interface Cost {
  seconds: number;
  processor: number;
  mebibytes: number;
}

async function merge(options: readonly string[]): Promise<Cost & { hashes: string }> {
  const out = join(scratch, `out-${runs++}`);
  const spent = await timeNode(argumentsOf(out, [...options, '--report', `${out}.json`]), root);
  const { seconds } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as { seconds: number };
  const cost = {
    seconds,
    processor: spent.user + spent.system,
    mebibytes: spent.peakBytes / 2 ** 20,
  };
  const hashes = hashesOf(out);
  rmSync(out, { recursive: true });
  return { ...cost, hashes };
}

/** sha256 of the weight files. */
function hashesOf(out: string): string {
  return readdirSync(out)
    .filter((file) => /\.(?:gguf|safetensors)$/.test(file))
    .sort((a, b) => (a.endsWith('.gguf') ? 1 : 0) - (b.endsWith('.gguf') ? 1 : 0))
    .map((file) =>
      createHash('sha256')
        .update(readFileSync(join(out, file)))
        .digest('hex'),
    )
    .join(' ');
}

await merge([]);
const kinds = [[], ...GGUF_TYPES.map((type) => ['--gguf', type])];
const best: Cost[] = kinds.map(() => ({ seconds: Infinity, processor: Infinity, mebibytes: 0 }));
// in turn, so that the machine's moods meet all of them
for (let round = 0; round < Number(values.repeat); round++) {
  for (const [i, options] of kinds.entries()) {
    const { seconds, processor, mebibytes } = await merge(options);
    best[i] = {
      seconds: Math.min(best[i]!.seconds, seconds),
      processor: Math.min(best[i]!.processor, processor),
      mebibytes: Math.max(best[i]!.mebibytes, mebibytes),
    };
  }
}
const plain = best[0]!.processor;
console.log(
  '| also written | seconds | processor s | added | of the merge | peak MiB |\n|---|---:|---:|---:|---:|---:|',
);
for (const [i, { seconds, processor, mebibytes }] of best.entries()) {
  const added = i === 0 ? '' : (processor - plain).toFixed(2);
  const share = i === 0 ? '' : `${Math.round((100 * (processor - plain)) / plain)} %`;
  const [, type = 'nothing'] = kinds[i]!;
  console.log(
    `| ${type} | ${seconds.toFixed(2)} | ${processor.toFixed(2)} | ${added} | ${share} | ${mebibytes.toFixed(0)} |`,
  );
}

for (let kill = 0; kill < Number(values.kills); kill++) {
  const options = ['--gguf', 'Q4_K_M', ...(kill % 2 === 0 ? [] : ['--gguf-only']), '--resume'];
  const out = join(scratch, 'killed');
  const times: number[] = [];
  for (let attempt = 0; ; attempt++) {
    const child = start(out, options);
    const done = ended(child);
    // the sooner it is killed the more often; at last it is let through
    const wait = attempt < 3 ? 300 + 173 * ((kill + attempt * 2) % 7) : 1e9;
    const timer = new AbortController();
    void delay(wait, undefined, { signal: timer.signal }).then(
      () => child.kill('SIGKILL'),
      () => undefined,
    );
    const code = await done;
    timer.abort();
    if (code === 0) break;
    times.push(wait);
  }
  const hashes = hashesOf(out);
  rmSync(out, { recursive: true });
  const { hashes: reference } = await merge(options);
  const same = hashes !== '' && hashes === reference;
  console.log(
    `killed after ${times.join(', ')} ms (${options.join(' ')}): ${same ? 'the same bytes' : 'OTHER BYTES'}`,
  );
  if (!same) process.exitCode = 1;
}
