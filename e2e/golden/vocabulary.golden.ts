/**
 * Vocabularies on real material: a real model whose tokens were given other ids merges to the bits of the model itself,
 * and runs; published tokenizers are united where one tokenizer can do it, and refused by name where none can.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { GREEDY, generate } from '../../src/evaluate/generation';
import { DEFAULT_PROTOCOL, evaluate } from '../../src/evaluate/perplexity';
import { openPlannedWeights } from '../../src/evaluate/planned-weights';
import { createTokenizer, type Tokenizer } from '../../src/foreign/tokenizer';
import { parseModelConfig } from '../../src/formats/model-config';
import { buildSafetensorsHeader } from '../../src/formats/safetensors-write';
import { openRunner, type Runner } from '../../src/forward/runner';
import { memoryFolder, openerOf, safetensors } from '../../src/inputs/memory-models.test.support';
import { methodById } from '../../src/merge/methods';
import type { Plan } from '../../src/merge/plan/plan';
import { makePlan } from '../../src/merge/plan/recipe-plan';
import { resolveArchitecture } from '../../src/models/resolution';
import type { ModelFolder } from '../../src/sources/model-folder';
import { mergeInNode, planInNode, type Tensors } from '../merge-in-node';
import { readFile, readText, real, reference } from './reference';

const FLAGS = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
const EMBEDDING = 'model.embed_tokens.weight';
const CHAT = '<|chat|>';
const recipe = (source: string, more = '') => `merge_method: linear
base_model: base
models:
  - {model: base, parameters: {weight: 0.3}}
  - {model: wiki, parameters: {weight: 0.7}}
tokenizer:
  source: ${source}
${more}`;

interface TokenizerJson {
  added_tokens: { id: number; content: string; special?: boolean }[];
  model: { vocab: Record<string, number>; merges: unknown[] };
}

/** `wiki` with token i at `ids[i]`, and one more token whose row is `chat`. */
function reordered(ids: readonly number[], chat?: Float32Array): ModelFolder {
  const stored = readFile(real, 'f32/wiki/model.safetensors');
  const file = JSON.parse(readText(real, 'f32/wiki/tokenizer.json')) as TokenizerJson;
  const moved = (id: number) => ids[id]!;
  for (const [token, id] of Object.entries(file.model.vocab)) file.model.vocab[token] = moved(id);
  for (const token of file.added_tokens) token.id = moved(token.id);
  if (chat) file.added_tokens.push({ id: ids.length, content: CHAT, ...FLAGS });
  const { shape, values } = stored.get(EMBEDDING)!;
  const width = shape[1]!;
  const rows = new Float32Array((ids.length + (chat ? 1 : 0)) * width);
  for (const [id, to] of ids.entries()) rows.set(values.subarray(id * width, (id + 1) * width), to * width);
  if (chat) rows.set(chat, ids.length * width);
  stored.set(EMBEDDING, {
    dtype: 'F32',
    shape: [rows.length / width, width],
    values: rows,
    bytes: new Uint8Array(rows.buffer),
  });
  const config = { ...JSON.parse(readText(real, 'f32/wiki/config.json')), vocab_size: rows.length / width };
  return memoryFolder('wiki', {
    'config.json': config,
    'tokenizer.json': JSON.stringify(file),
    'model.safetensors': weightFile(stored),
  });
}

function weightFile(tensors: Tensors): Uint8Array<ArrayBuffer> {
  const entries = [...tensors].map(([name, { shape, bytes }]) => ({
    name,
    dtype: 'F32' as const,
    shape,
    byteLength: bytes.length,
  }));
  const header = buildSafetensorsHeader(entries, {});
  const file = new Uint8Array(entries.reduce((n, { byteLength }) => n + byteLength, header.length));
  file.set(header);
  let at = header.length;
  for (const { bytes } of tensors.values()) {
    file.set(bytes, at);
    at += bytes.length;
  }
  return file;
}

/** A permutation of 0 … n−1 by a linear congruence. */
const permutation = (n: number): number[] => {
  const order = Array.from({ length: n }, (_, i) => i);
  let state = 12345;
  for (let i = n - 1; i > 0; i--) {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    const j = state % (i + 1);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
};
const TOKENS = 512;
const WIDTH = 64;
const chatRow = Float32Array.from({ length: WIDTH }, (_, i) => Math.sin(i) / 8);
const plainFolders = { base: 'f32/base', wiki: 'f32/wiki' };

const textOf = (plan: Plan, path: string): string => {
  const content = plan.extras.find((extra) => extra.path === path)!.content;
  if ('text' in content) return content.text;
  return readText(real, `f32/${content.folder}`, content.file);
};

async function run<T>(
  text: string,
  folders: Record<string, string | ModelFolder>,
  use: (runner: Runner, tokenizer: Tokenizer) => Promise<T>,
): Promise<T> {
  const { plan, read } = await planInNode(text, real, folders);
  const engine = createCpuBackend();
  const weights = await openPlannedWeights(plan, [engine], read, false);
  const config = parseModelConfig(textOf(plan, 'config.json'), 'config.json');
  const runner = openRunner(engine, resolveArchitecture(config), weights);
  const tokenizer = createTokenizer(
    {
      tokenizer: textOf(plan, 'tokenizer.json'),
      config: textOf(plan, 'tokenizer_config.json'),
      hasSentencePiece: false,
    },
    'merged',
  );
  try {
    return await use(runner, tokenizer);
  } finally {
    runner.close();
    weights.close();
  }
}

describe('a real model under other ids', () => {
  const other = permutation(TOKENS);

  it('merges to the bits of the model itself, whatever the tiles', async () => {
    const expected = await mergeInNode(recipe('base'), real, plainFolders);
    for (const source of ['base', 'union']) {
      const merged = await mergeInNode(
        recipe(source),
        real,
        { base: 'f32/base', wiki: reordered(other) },
        4096,
      );
      for (const [name, { bytes }] of expected.tensors) {
        expect(Buffer.compare(merged.tensors.get(name)!.bytes, bytes), `${source}: ${name}`).toBe(0);
      }
    }
  });

  it('has the same row for every token under the ids of the other, and one for a token of its own', async () => {
    const folders = { base: 'f32/base', wiki: reordered(other, chatRow) };
    const [base, wiki] = ['base', 'wiki'].map(
      (m) => readFile(real, `f32/${m}/model.safetensors`).get(EMBEDDING)!.values,
    );
    const united = await mergeInNode(recipe('union', '  pad_to_multiple_of: 64\n'), real, folders);
    const rows = united.tensors.get(EMBEDDING)!;
    expect(rows.shape).toEqual([576, WIDTH]);
    const theirs = await mergeInNode(recipe('wiki'), real, folders);
    const moved = theirs.tensors.get(EMBEDDING)!;
    expect(moved.shape).toEqual([513, WIDTH]);
    for (let id = 0; id < TOKENS; id++) {
      for (let c = 0; c < WIDTH; c++) {
        const expected = 0.3 * base![id * WIDTH + c]! + 0.7 * wiki![id * WIDTH + c]!;
        expect(Math.abs(rows.values[id * WIDTH + c]! - expected)).toBeLessThan(1e-6);
        expect(moved.values[other[id]! * WIDTH + c]).toBe(rows.values[id * WIDTH + c]);
      }
    }
    for (let c = 0; c < WIDTH; c++) {
      expect(Math.abs(rows.values[TOKENS * WIDTH + c]! - chatRow[c]!)).toBeLessThan(1e-7);
      // each model is filled up with the mean of its own rows
      const mean = (values: Float32Array) => {
        let sum = chatRow[c]!;
        for (let id = 0; id < TOKENS; id++) sum += values[id * WIDTH + c]!;
        return sum / 513;
      };
      const expected = 0.3 * mean(base!) + 0.7 * mean(wiki!);
      expect(Math.abs(rows.values[575 * WIDTH + c]! - expected)).toBeLessThan(1e-6);
    }
    expect(JSON.parse(united.config!).vocab_size).toBe(576);
  });

  it('an adapter’s update of the embedding and its own head move with the tokens', async () => {
    const plain = await mergeInNode(
      'merge_method: passthrough\nmodels: [{model: base+wiki-lora-head-embed}]\n',
      real,
      { base: 'f32/base' },
    );
    const moved = await mergeInNode(
      `merge_method: task_arithmetic
base_model: base
models:
  - {model: base+wiki-lora-head-embed, parameters: {weight: 1}}
  - {model: wiki, parameters: {weight: 0}}
tokenizer_source: wiki
`,
      real,
      { base: 'f32/base', wiki: reordered(other) },
    );
    expect(JSON.parse(moved.config!).tie_word_embeddings).toBe(false);
    for (const name of [EMBEDDING, 'lm_head.weight']) {
      const [there, here] = [plain, moved].map(({ tensors }) => tensors.get(name)!.values);
      for (let id = 0; id < TOKENS; id++) {
        for (let c = 0; c < WIDTH; c++) {
          const difference = here![other[id]! * WIDTH + c]! - there![id * WIDTH + c]!;
          expect(Math.abs(difference), name).toBeLessThan(1e-6);
        }
      }
    }
  });

  it('runs: the same perplexity, and text with the token in it', async () => {
    const bytes = readFileSync(join(real, 'eval/tinystories.ids.u16'));
    const ids = new Uint16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + 1200));
    const measure = (runner: Runner) =>
      evaluate(runner, { ids, bos: 1 }, DEFAULT_PROTOCOL).then(({ perplexity }) => perplexity);
    const plain = await run(recipe('base'), plainFolders, measure);
    const folders = { base: 'f32/base', wiki: reordered(other) };
    expect(await run(recipe('union'), folders, measure)).toBe(plain);

    const extended = { base: 'f32/base', wiki: reordered(other, chatRow) };
    const written = await run(recipe('union'), extended, async (runner, tokenizer) => {
      const prompt = [...tokenizer.prefix, ...tokenizer.encode(`Once upon a time${CHAT}`)];
      expect(prompt.at(-1)).toBe(TOKENS);
      expect(prompt[0]).toBe(1);
      const [story] = await generate(runner, [prompt], { maxTokens: 12, sampling: GREEDY });
      return tokenizer.decode(story!.ids);
    });
    expect(written.length).toBeGreaterThan(10);
  });
});

describe('published tokenizers', () => {
  const read = (name: string) => readText(reference, 'data/tokenizers', name, 'tokenizer.json');
  const folder = (path: string, tokenizer: string, rows: number) =>
    memoryFolder(path, {
      'config.json': {
        model_type: 'llama',
        hidden_size: 2,
        num_hidden_layers: 0,
        vocab_size: rows,
        tie_word_embeddings: true,
      },
      'model.safetensors': safetensors({
        [EMBEDDING]: ['F32', [rows, 2]],
        'model.norm.weight': ['F32', [2]],
      }),
      'tokenizer.json': tokenizer,
    });
  const union = (...folders: ModelFolder[]) =>
    makePlan(
      {
        mergeMethod: 'linear',
        models: folders.map(({ path }) => ({ model: path, parameters: { weight: 1 } })),
        parameters: {},
        tokenizerSource: 'union',
        amalgam: {},
      },
      openerOf(...folders),
      methodById,
    );
  const sentence = 'The quick brown fox — 17 jumps, “über” den faulen Hund.\n\n  def f(x):\n    return x';

  it.each([
    ['gpt2', 50257],
    ['gpt-neox', 50278],
    ['tinyllama', 32000],
  ])('%s with two chat tokens: ids of the base stay, text splits as before', async (name, size) => {
    const text = read(name);
    const file = JSON.parse(text) as TokenizerJson;
    file.added_tokens.push({ id: size, content: '<|im_start|>', ...FLAGS });
    file.added_tokens.push({ id: size + 1, content: '<|im_end|>', ...FLAGS });
    const plan = await union(folder('base', text, size), folder('chat', JSON.stringify(file), size + 2));
    expect(plan.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(plan.vocabulary!.output).toEqual({ from: 'base', tokens: size + 2, rows: size + 2 });
    const written = plan.extras.find(({ path }) => path === 'tokenizer.json')!.content as { text: string };
    const [before, after] = [text, written.text].map((tokenizer) =>
      createTokenizer({ tokenizer, hasSentencePiece: false }, name),
    );
    expect(after!.encode(sentence)).toEqual(before!.encode(sentence));
    expect(after!.encode('<|im_end|>')).toContain(size + 1);
    expect(after!.size).toBe(size + 2);
  });

  it('gpt2 and gpt-neox have no union', async () => {
    const plan = await union(folder('gpt2', read('gpt2'), 50257), folder('neox', read('gpt-neox'), 50278));
    const problem = plan.problems.find(({ code }) => code === 'TokenizersNotUnited')!;
    expect(problem.message).toMatch(/union of gpt2, neox: their merge lists diverge at number 1,/);
    expect(problem.remedy).toMatch(/tokenizer_source: base/);
  });
});
