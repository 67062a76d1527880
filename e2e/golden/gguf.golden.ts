/**
 * The command's GGUF files in llama.cpp: perplexity there against ours for every type, with and without an importance
 * matrix, of the sample's merge and of a real model of 15 M parameters; and two LoRAs of that model made one.
 * Prints the table of docs/formats.md.
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, describe, expect, it } from 'vitest';
import { cutWindows, DEFAULT_PROTOCOL } from '../../src/evaluate/perplexity';
import { createTokenizer } from '../../src/foreign/tokenizer';
import { GGUF_TYPES, type GgufType, usesImportance } from '../../src/formats/gguf-type';
import { SAMPLES } from '../disk-folder';
import { hasLlama, type LlamaModel, llama } from '../llama-cpp';
import { readFile, reference } from './reference';

const root = join(import.meta.dirname, '../..');
const stories = join(reference, 'data/stories15m');
const scratch = mkdtempSync(join(tmpdir(), 'amalgam-gguf-'));
afterAll(() => rmSync(scratch, { recursive: true }));

/** Perplexity in llama.cpp by the strided protocol that is ours too. */
function llamaPerplexity(model: LlamaModel, ids: readonly number[]): number {
  const { window, stride } = DEFAULT_PROTOCOL;
  let loss = 0;
  for (const { begin, end, from } of cutWindows(ids.length, window, stride)) {
    const logits = model.logits(ids.slice(begin, end));
    for (let position = from; position < end - begin; position++) {
      const row = logits.subarray((position - 1) * model.vocabulary, position * model.vocabulary);
      let most = -Infinity;
      for (const logit of row) most = Math.max(most, logit);
      let sum = 0;
      for (const logit of row) sum += Math.exp(logit - most);
      loss += most + Math.log(sum) - row[ids[begin + position]!]!;
    }
  }
  return Math.exp(loss / (ids.length - 1));
}

let runs = 0;
/** Runs the command; its folder, and the seconds that it took. */
function amalgam(verb: string, subject: string, ...options: string[]): { out: string; seconds: number } {
  const out = join(scratch, `out-${runs++}`);
  const begun = performance.now();
  const args = [
    join(root, 'src/cli/amalgam.mjs'),
    verb,
    subject,
    ...options,
    '--cache',
    join(scratch, 'cache'),
  ];
  execFileSync(process.execPath, [...args, '--out', out], { cwd: scratch, stdio: 'pipe' });
  return { out, seconds: (performance.now() - begun) / 1000 };
}

function written(name: string, text: string): string {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
}

interface Case {
  recipe: string;
  tokenizer: string;
  text: string;
  /** Calibration text of the importance matrix. */
  calibration: string;
  /** How much farther from exact a type may be, as a share of the perplexity. */
  most: Partial<Record<GgufType, number>>;
}

const CASES: Record<string, () => Case> = {
  sample: () => ({
    recipe: `merge_method: ties
base_model: ${SAMPLES}/base
models:
  - {model: ${SAMPLES}/base+${SAMPLES}/kitchen, parameters: {weight: 1, density: 0.2}}
  - {model: ${SAMPLES}/base+${SAMPLES}/harbour, parameters: {weight: 1, density: 0.2}}
  - {model: ${SAMPLES}/workshop, parameters: {weight: 1, density: 0.2}}
`,
    tokenizer: join(SAMPLES, 'base'),
    text: readFileSync(join(SAMPLES, 'texts/workshop.eval.txt'), 'utf8'),
    calibration: join(SAMPLES, 'texts/common.calibration.txt'),
    most: { F16: 1e-3, BF16: 5e-3, Q8_0: 5e-3, Q6_K: 5e-3, Q5_K_M: 0.02, Q4_K_M: 0.03, Q4_0: 0.08 },
  }),
  stories15m: () => {
    const corpus = readFileSync(join(reference, 'data/corpora/tinyshakespeare.txt'), 'utf8');
    return {
      recipe: `merge_method: task_arithmetic
base_model: ${stories}/base
models:
  - {model: ${stories}/shakespeare, parameters: {weight: 0.7}}
  - {model: ${stories}/base+${stories}/bible-lora, parameters: {weight: 0.3}}
`,
      tokenizer: join(stories, 'base'),
      text: readFileSync(join(stories, 'texts/shakespeare.eval.txt'), 'utf8').slice(0, 12_000),
      calibration: written('shakespeare.txt', corpus.slice(0, 300_000)),
      most: { F16: 1e-3, BF16: 5e-3, Q8_0: 5e-3, Q6_K: 0.01, Q5_K_M: 0.02, Q4_K_M: 0.05, Q4_0: 0.08 },
    };
  },
};

const table: string[] = [];
afterAll(() => console.info(table.join('\n')));

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama).each(Object.keys(CASES))('%s as GGUF', (name) => {
  it('says in llama.cpp what it says here', { timeout: 1_800_000 }, () => {
    const { recipe, tokenizer: folder, text, calibration, most } = CASES[name]!();
    const file = written(`${name}.yml`, recipe);
    const tokenizer = createTokenizer(
      { tokenizer: readFileSync(join(folder, 'tokenizer.json'), 'utf8'), hasSentencePiece: false },
      name,
    );
    const ids = [...tokenizer.prefix, ...tokenizer.encode(text)];
    const perplexityOf = (type: GgufType, ...more: string[]) => {
      const { out } = amalgam('merge', file, '--gguf', type, '--gguf-only', ...more);
      const path = join(out, readdirSync(out).find((found) => found.endsWith('.gguf'))!);
      const model = llama().open(path);
      try {
        if (type === 'F32') expect(model.tokenize(text, true)).toEqual(ids);
        return { perplexity: llamaPerplexity(model, ids), bytes: statSync(path).size };
      } finally {
        model.close();
      }
    };
    const report = join(scratch, `${name}.json`);
    const evaluated = ['evaluate', file, '--tokens', written(`${name}.ids.json`, JSON.stringify(ids))];
    execFileSync(
      process.execPath,
      [
        join(root, 'src/cli/amalgam.mjs'),
        ...evaluated,
        '--report',
        report,
        '--cache',
        join(scratch, 'cache'),
      ],
      { cwd: scratch, stdio: 'pipe' },
    );
    const ours = (JSON.parse(readFileSync(report, 'utf8')) as { perplexity: number }).perplexity;
    table.push(`${name}: ${ids.length} tokens, here ${ours.toFixed(4)}`);
    for (const type of GGUF_TYPES) {
      const { perplexity, bytes } = perplexityOf(type);
      const weighted = usesImportance(type) ? perplexityOf(type, '--imatrix', calibration) : undefined;
      const said = weighted ? `${weighted.perplexity.toFixed(4)} (${weighted.bytes})` : '';
      table.push(`| ${type} | ${perplexity.toFixed(4)} | ${said} | ${bytes} |`);
      const limit = most[type] ?? 1e-4;
      expect(Math.abs(perplexity / ours - 1), type).toBeLessThan(limit);
      if (weighted) expect(Math.abs(weighted.perplexity / ours - 1), `${type}, weighted`).toBeLessThan(limit);
    }
  });
});

describe('two LoRAs of a real model', () => {
  it('become one without the model, and added to it the merged model', { timeout: 300_000 }, () => {
    const options = ['--rank', '16', '--embeddings', 'skip', '--vectors', 'skip'];
    const extracted = amalgam('lora', join(stories, 'base'), join(stories, 'shakespeare'), ...options);
    const loras = `models:
  - {model: ${join(stories, 'bible-lora')}, parameters: {weight: 0.5}}
  - {model: ${extracted.out}, parameters: {weight: 0.7}}
`;
    const combined = (method: string, combination: string) =>
      amalgam(
        'merge',
        written(
          `${combination}.yml`,
          `merge_method: ${method}\n${loras}amalgam: {output: adapter, combination: ${combination}}\n`,
        ),
      );
    const cat = combined('task_arithmetic', 'cat');
    table.push(`cat of two LoRAs: ${cat.seconds.toFixed(2)} s`);
    for (const [method, combination] of [
      ['task_arithmetic', 'svd'],
      ['task_arithmetic', 'linear'],
      ['ties', 'ties'],
      ['dare_linear', 'dare_linear'],
    ] as const) {
      const { seconds } = combined(method, combination);
      table.push(`${combination} of two LoRAs: ${seconds.toFixed(2)} s`);
    }
    const base = join(stories, 'base');
    const onBase = (of: string) => amalgam('merge', written(`${runs}.yml`, `${of}dtype: float32\n`)).out;
    const one = onBase(`merge_method: passthrough\nmodels:\n  - model: ${base}+${cat.out}\n`);
    const two = onBase(
      `merge_method: task_arithmetic\nbase_model: ${base}\n${loras.replaceAll('model: ', `model: ${base}+`)}`,
    );
    const [mine, theirs] = [one, two].map((out) => readFile(out, 'model.safetensors'));
    for (const [name, { values }] of theirs!) {
      const other = mine!.get(name)!.values;
      let furthest = 0;
      let largest = 0;
      for (const [i, value] of values.entries()) {
        furthest = Math.max(furthest, Math.abs(value - other[i]!));
        largest = Math.max(largest, Math.abs(value));
      }
      expect(furthest / largest, name).toBeLessThan(1e-5);
    }
  });
});
