/**
 * Cost of a GGUF file beside a merge, on the processor: one layer of the shape of Llama-3.2-1B (69 M parameters), whose
 * rows blocks of 256 divide, two fine-tunes, by the command. Seconds, processor time and peak memory of the process without
 * and with each type.
 *
 *     npm run bench:gguf -- [--repeat 3] [--method task_arithmetic]
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { GGUF_TYPES } from '../../src/formats/gguf-type';
import { adapter, checkpoint, LLAMA_1B } from './checkpoints';
import { timeNode } from './processes';

const root = join(import.meta.dirname, '../..');
const cache = join(root, 'node_modules/.cache/amalgam-bench');
const { values } = parseArgs({
  options: {
    repeat: { type: 'string', default: '3' },
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
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    model: { type: 'BPE', vocab: Object.fromEntries(vocabulary), merges: [] },
  }),
);
const tuned = join(scratch, 'recipe.yml');
writeFileSync(
  tuned,
  `merge_method: ${values.method}
base_model: ${folders[0]}
models:
  - {model: ${folders[1]}, parameters: {weight: 0.5, density: 0.5}}
  - {model: ${folders[2]}, parameters: {weight: 0.5, density: 0.5}}
`,
);

let runs = 0;
interface Cost {
  seconds: number;
  processor: number;
  mebibytes: number;
}

async function merge(options: readonly string[], recipe = tuned): Promise<Cost> {
  const out = join(scratch, `out-${runs++}`);
  const report = `${out}.json`;
  const spent = await timeNode(
    [
      ...['src/cli/amalgam.mjs', 'merge', recipe, '--out', out, '--engine', 'cpu'],
      ...[...options, '--report', report],
    ],
    root,
  );
  const { seconds } = JSON.parse(readFileSync(report, 'utf8')) as { seconds: number };
  rmSync(out, { recursive: true });
  return { seconds, processor: spent.user + spent.system, mebibytes: spent.peakBytes / 2 ** 20 };
}

/** The best of some rounds of each, in turn, so that the machine's moods meet all of them. */
async function bestOf(runs: readonly (() => Promise<Cost>)[]): Promise<Cost[]> {
  await runs[0]!();
  const best: Cost[] = runs.map(() => ({ seconds: Infinity, processor: Infinity, mebibytes: 0 }));
  for (let round = 0; round < Number(values.repeat); round++) {
    for (const [i, run] of runs.entries()) {
      const { seconds, processor, mebibytes } = await run();
      best[i] = {
        seconds: Math.min(best[i]!.seconds, seconds),
        processor: Math.min(best[i]!.processor, processor),
        mebibytes: Math.max(best[i]!.mebibytes, mebibytes),
      };
    }
  }
  return best;
}

function print(what: string, names: readonly string[], costs: readonly Cost[]): void {
  const plain = costs[0]!.processor;
  console.log(
    `| ${what} | seconds | processor s | added | of the merge | peak MiB |\n|---|---:|---:|---:|---:|---:|`,
  );
  for (const [i, { seconds, processor, mebibytes }] of costs.entries()) {
    const added = i === 0 ? '' : (processor - plain).toFixed(2);
    const share = i === 0 ? '' : `${Math.round((100 * (processor - plain)) / plain)} %`;
    console.log(
      `| ${names[i]} | ${seconds.toFixed(2)} | ${processor.toFixed(2)} | ${added} | ${share} | ${mebibytes.toFixed(0)} |`,
    );
  }
}

const kinds = [[], ...GGUF_TYPES.map((type) => ['--gguf', type])];
print('also written', ['nothing', ...GGUF_TYPES], await bestOf(kinds.map((options) => () => merge(options))));

const lora = await adapter(cache, SHAPE, 16, 1);
const read = [];
for (const [i, type] of ['', ...GGUF_TYPES].entries()) {
  const out = join(scratch, `base-${i}`);
  const asGguf = ['src/cli/amalgam.mjs', 'convert', folders[0]!, '--gguf', type, '--gguf-only', '--out', out];
  if (type !== '') await timeNode(asGguf, root);
  const file = join(scratch, `read-${i}.yml`);
  const model = type === '' ? folders[0] : join(out, `model-${type}.gguf`);
  writeFileSync(
    file,
    `merge_method: task_arithmetic\nbase_model: ${model}\nmodels:\n  - {model: ${model}+${lora}, parameters: {weight: 1}}\n`,
  );
  read.push(() => merge([], file));
}
print('base of the LoRA', ['BF16 (safetensors)', ...GGUF_TYPES], await bestOf(read));
