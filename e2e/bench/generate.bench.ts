/**
 * Tokens a second of our forward pass on the processor, beside llama.cpp on the same weights: seeded checkpoints of real shapes,
 * a prompt of 64 ids and 24 tokens behind it, in turns; the best prompt and the best token count. Needs linux on x64; for
 * docs/benchmarks.md. ROWS takes the rows with that text.
 *
 *   [ROWS=BF16] npx vitest run --config e2e/bench/vitest.bench.config.ts generate
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';
import { beforeAll, test } from 'vitest';
import '../../src/backend/gpu/node-webgpu.test.support';
import type { Backend } from '../../src/backend/backend';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { type HelpCalls, openSharedWeights, type StartHelper } from '../../src/backend/cpu/shared-weights';
import { createGpuBackend } from '../../src/backend/gpu/gpu-backend';
import { generate } from '../../src/evaluate/generation';
import { parseModelConfig } from '../../src/formats/model-config';
import { openRunner } from '../../src/forward/runner';
import type { StoredWeight, WeightSource } from '../../src/forward/weight-source';
import { resolveArchitecture } from '../../src/models/resolution';
import { llama } from '../llama-cpp';
import { checkpoint, LLAMA_1B, QWEN_05B, type Shape } from './checkpoints';

const ROOT = join(import.meta.dirname, '../..');
const CACHE = join(ROOT, 'node_modules/.cache/amalgam-bench');
const PROMPT = 64;
const TOKENS = 24;
const ROUNDS = Number(process.env.ROUNDS ?? 5);

interface Seconds {
  prompt: number;
  tokens: number[];
}

const THREAD = join(CACHE, 'thread');

beforeAll(async () => {
  const { bundleForNode } = await import(pathToFileURL(join(ROOT, 'src/cli/build-command.mjs')).href);
  await bundleForNode(ROOT, THREAD, { thread: 'src/worker/node-thread.ts' });
});

const startHelper: StartHelper = (request) => {
  const worker = new Worker(join(THREAD, 'thread.mjs'));
  const calls = Comlink.wrap<HelpCalls>(nodeEndpoint(worker));
  void calls.help(request).catch((thrown: unknown) => console.error(thrown));
  return () => void worker.terminate();
};

/** Weights in BF16 as the F32 that they stand for. */
function widened(source: WeightSource): WeightSource {
  return {
    tensors: new Map([...source.tensors].map(([name, { shape }]) => [name, { dtype: 'F32', shape }])),
    async read(name, begin, end) {
      const halves = await source.read(name, begin / 2, end / 2);
      const [from, words] = [new Uint16Array(halves.buffer), new Uint32Array(halves.length / 2)];
      for (let i = 0; i < words.length; i++) words[i] = from[i]! << 16;
      return new Uint8Array(words.buffer);
    },
  };
}

/** Weights of a file, read as they are asked for. */
function fileSource(file: string): WeightSource {
  const open = openSync(file, 'r');
  const bytes = (begin: number, end: number) => {
    const out = new Uint8Array(end - begin);
    readSync(open, out, 0, out.length, begin);
    return out;
  };
  const begin = 8 + Number(new DataView(bytes(0, 8).buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes(8, begin))) as Record<
    string,
    StoredWeight & { data_offsets: [number, number] }
  >;
  delete header.__metadata__;
  return {
    tensors: new Map(Object.entries(header)),
    async read(name, from, to) {
      const at = begin + header[name]!.data_offsets[0];
      return bytes(at + from, at + to);
    },
  };
}

type Weights = 'F32' | 'BF16' | 'Q8_0';

/** A model that is open, and runs a prompt and the tokens behind it. */
interface Opened {
  run(): Promise<Seconds>;
  close(): void;
}

function openOurs(
  folder: string,
  prompt: readonly number[],
  weights: Weights,
  engine: Backend,
  maxTokens = TOKENS,
): Opened {
  const config = parseModelConfig(readFileSync(join(folder, 'config.json'), 'utf8'), 'config.json');
  const stored = fileSource(join(folder, 'model.safetensors'));
  const runner = openRunner(
    engine,
    resolveArchitecture(config),
    weights === 'F32' ? widened(stored) : stored,
    { residentBytes: 2 ** 33, weights: weights === 'Q8_0' ? '8-bit' : 'stored' },
  );
  return {
    async run() {
      const times = [performance.now()];
      await generate(runner, [prompt], {
        maxTokens,
        sampling: { temperature: 0, topP: 1, seed: 0 },
        onToken: () => times.push(performance.now()),
      });
      const [first, ...tokens] = times.slice(1).map((time, i) => (time - times[i]!) / 1000);
      return { prompt: first!, tokens };
    },
    close() {
      runner.close();
      engine.close();
    },
  };
}

function openLlama(file: string, prompt: readonly number[], threads: number): Opened {
  const model = llama().open(file);
  return { run: async () => model.seconds(prompt, TOKENS, threads), close: () => model.close() };
}

/** A tokenizer that llama.cpp takes; nothing is encoded by it. */
function writeTokenizer(folder: string, { vocabulary }: Shape): void {
  const vocab = Object.fromEntries(Array.from({ length: vocabulary }, (_, id) => [`t${id}`, id]));
  const pre_tokenizer = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  const tokenizer = { added_tokens: [], pre_tokenizer, model: { type: 'BPE', vocab, merges: [] } };
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
}

function ggufOf(folder: string, type: string): string {
  const out = `${folder}-${type}`;
  const file = join(out, `model-${type}.gguf`);
  if (existsSync(file)) return file;
  const args = ['convert', folder, '--out', out, '--gguf', type, '--gguf-only', '--quiet'];
  execFileSync(process.execPath, [join(ROOT, 'src/cli/amalgam.mjs'), ...args], { stdio: 'inherit' });
  return file;
}

test.each([QWEN_05B, LLAMA_1B])('$name', async (shape) => {
  mkdirSync(CACHE, { recursive: true });
  const folder = await checkpoint(CACHE, shape, 0);
  writeTokenizer(folder, shape);
  const prompt = promptOf(shape);
  process.stdout.write(`${cpus()[0]!.model}, load before: ${loadavg()[0]!.toFixed(1)}\n`);
  for (const type of ['F32', 'BF16', 'Q8_0'] as const) {
    for (const threads of [1, 2]) {
      const on = `${shape.name}, ${type}, ${threads} thread${threads > 1 ? 's' : ''}`;
      if (!on.includes(process.env.ROWS ?? '')) continue;
      const gguf = ggufOf(folder, type);
      const sides = {
        Amalgam: openOurs(
          folder,
          prompt,
          type,
          createCpuBackend(openSharedWeights(threads - 1, startHelper)),
        ),
        'llama.cpp': openLlama(gguf, prompt, threads),
      };
      const seconds = { Amalgam: [] as Seconds[], 'llama.cpp': [] as Seconds[] };
      // the first round reads the weights
      for (let round = 0; round <= ROUNDS; round++) {
        for (const side of ['Amalgam', 'llama.cpp'] as const) {
          const run = await sides[side].run();
          if (round > 0) seconds[side].push(run);
        }
      }
      for (const side of ['Amalgam', 'llama.cpp'] as const) {
        sides[side].close();
        print(`${on} · ${side}`, seconds[side]);
      }
    }
  }
});

/** Of a graphics device, without a counterpart: on a machine without one, Chromium's software device. */
test.each(['BF16', 'Q8_0'] as const)('0.5 B on WebGPU, %s', async (type) => {
  mkdirSync(CACHE, { recursive: true });
  const folder = await checkpoint(CACHE, QWEN_05B, 0);
  const engine = await createGpuBackend();
  const on = `${QWEN_05B.name}, ${type}, ${engine.adapter}`;
  const model = openOurs(folder, promptOf(QWEN_05B), type, engine, TOKENS / 4);
  // the first run reads the weights and compiles the kernels
  await model.run();
  print(on, [await model.run()]);
  model.close();
});

const promptOf = ({ vocabulary }: Shape) => Array.from({ length: PROMPT }, (_, i) => (i * 7919) % vocabulary);

function print(on: string, runs: readonly Seconds[]): void {
  const tokens = runs.flatMap((run) => run.tokens).sort((x, y) => x - y);
  const [best, median] = [tokens[0]!, tokens[tokens.length >> 1]!].map((token) => (1 / token).toFixed(2));
  const read = (PROMPT / Math.min(...runs.map(({ prompt }) => prompt))).toFixed(1);
  process.stdout.write(`${on}: prompt ${read}, then ${best} tokens/s (median ${median})\n`);
}
