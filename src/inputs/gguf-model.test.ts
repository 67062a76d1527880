/** What the writer makes of a model is read as that model: weights to the bit, and every number that the forward pass uses. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { hasLlama, llama } from '../../e2e/llama-cpp';
import { parseModelConfig } from '../formats/model-config';
import type { FileTensor } from '../forward/golden.test.fixture';
import { BLOCK_TYPES } from '../gguf/block-types';
import type { GgufValue } from '../gguf/header';
import { ggufBytes, noise, tinyConfig, tinyPlan } from '../gguf/tiny-models.test.support';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import type { Architecture } from '../models/architecture';
import { GGUF_ARCHITECTURES } from '../models/gguf-architectures';
import { resolveArchitecture } from '../models/resolution';
import type { Checkpoint } from './checkpoint';
import { memoryFolder, openerOf, recipeOf, safetensors } from './memory-models.test.support';
import { openModel } from './opened-model';
import { readingRows } from './row-reader';
import type { TensorRef } from './tensor-view';

const { fround } = Math;

/** Reads a tensor in pieces that begin and end anywhere. */
async function openAll(files: Record<string, unknown>) {
  const folder = memoryFolder('m', files as Record<string, Uint8Array<ArrayBuffer>>);
  const model = (await openModel(folder)) as Checkpoint;
  const read = readingRows((ref, begin, end) =>
    model.folder.files
      .find(({ path }) => path === ref.file)!
      .open()
      .read(ref.begin + begin, ref.begin + end),
  );
  const bytesOf = async (ref: TensorRef) => {
    const length = ref.end - ref.begin;
    const cuts = [0, 4, Math.floor(length / 24) * 8 + 4, length - 4, length].filter((cut) => cut <= length);
    const pieces = await Promise.all(
      cuts.slice(1).map((end, i) => (end > cuts[i]! ? read(ref, cuts[i]!, end) : new Uint8Array(0))),
    );
    return Buffer.concat(pieces);
  };
  return { model, bytesOf };
}

/** Without what llama.cpp’s graphs do not have: windows in layers that see everything there. */
function asInFile(text: string): Architecture {
  const made = resolveArchitecture(parseModelConfig(text, 'config.json'));
  const modelType = made.modelType === 'mistral' ? 'llama' : made.modelType;
  return { ...made, modelType };
}

/** Norms with a 1 added lose what f32 has no room for beside it. */
function expectedBytes({ bytes }: FileTensor, plus: 0 | 1): Buffer {
  const values = new Float32Array(bytes.slice().buffer);
  if (plus) for (let i = 0; i < values.length; i++) values[i] = fround(fround(values[i]! + 1) - 1);
  return Buffer.from(values.buffer);
}

describe('every type', () => {
  test.each(Object.keys(GGUF_ARCHITECTURES))('%s', async (type) => {
    const text = tinyConfig(type);
    const weights = noise(text);
    const plan = tinyPlan(text, weights);
    const { model, bytesOf } = await openAll({ 'm.gguf': await ggufBytes(plan, weights) });
    expect([...model.tensors.keys()].sort()).toEqual([...weights.keys()].sort());
    for (const [name, weight] of weights) {
      const ref = model.dequantized.tensors.get(name)!;
      expect([name, ref.shape]).toEqual([name, weight.shape]);
      const expected = expectedBytes(weight, plan.tensors.get(name)!.plus);
      expect(Buffer.compare(await bytesOf(ref), expected), name).toBe(0);
      expect(ref.derived?.dtype ?? ref.dtype).toBe('F32');
    }
    expect(resolveArchitecture(model.config!)).toEqual(asInFile(text));
  });
});

const text = tinyConfig('llama');
const weights = noise(text);
const plan = tinyPlan(text, weights);
const written = ggufBytes(plan, weights);

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
test.runIf(hasLlama).each(['Q8_0', 'Q4_0', 'Q4_K_M'] as const)(
  '%s is what llama.cpp takes it for, in the order of the model; the model is that of F32',
  async (type) => {
    // rows that blocks of 256 divide, and rows that only those of 32 do
    const config = tinyConfig('llama', { hidden_size: 256, intermediate_size: 96, head_dim: 64 });
    const values = noise(config);
    const quantized = tinyPlan(config, values, type);
    const { model, bytesOf } = await openAll({ 'm.gguf': await ggufBytes(quantized, values) });
    expect([...model.dequantized.formats]).toEqual([expect.stringContaining(`${type} (`)]);
    for (const [name, ref] of model.dequantized.tensors) {
      const { type: block, columns } = quantized.tensors.get(name)!;
      const read = new Float32Array(Uint8Array.from(await bytesOf(ref)).buffer);
      const stored = new Float32Array(values.get(name)!.bytes.slice().buffer);
      const expected =
        BLOCK_TYPES[block].elements === 1
          ? stored
          : llama().dequantizeRows(
              block.replaceAll(/[A-Z]+/g, (part) => (part === 'K' ? part : part.toLowerCase())),
              llama().quantizeRows(block, stored, columns),
              stored.length,
            );
      expect([name, read.findIndex((value, i) => value !== expected[i])]).toEqual([name, -1]);
    }
    expect(resolveArchitecture(model.config!)).toEqual(asInFile(config));
  },
);

// files of llama-quantize, of which none is written here
test.runIf(hasLlama).each<[string, number, number]>([
  ['Q2_K', 10, 0.4],
  ['Q3_K_M', 12, 0.25],
  ['Q5_1', 9, 0.06],
  ['IQ4_NL', 25, 0.15],
  ['IQ4_XS', 30, 0.15],
])('%s of llama-quantize is near what it was made of', async (name, type, most) => {
  const config = tinyConfig('llama', { hidden_size: 256, intermediate_size: 256, head_dim: 64 });
  const values = noise(config);
  const scratch = mkdtempSync(join(tmpdir(), 'amalgam-gguf-'));
  const [from, to] = [join(scratch, 'f32.gguf'), join(scratch, 'less.gguf')];
  writeFileSync(from, await ggufBytes(tinyPlan(config, values), values));
  llama().quantizeFile(from, to, type);
  const { model, bytesOf } = await openAll({ 'less.gguf': Uint8Array.from(readFileSync(to)) });
  rmSync(scratch, { recursive: true });
  expect([...model.dequantized.formats]).toEqual([expect.stringContaining(name)]);
  for (const [tensor, ref] of model.dequantized.tensors) {
    const read = new Float32Array(Uint8Array.from(await bytesOf(ref)).buffer);
    const stored = new Float32Array(values.get(tensor)!.bytes.slice().buffer);
    const far = Math.hypot(...read.map((value, i) => value - stored[i]!)) / Math.hypot(...stored);
    expect([tensor, far < most]).toEqual([tensor, true]);
  }
});

describe('a folder', () => {
  test('a tokenizer and a config that say the same are taken from beside the file, a stub is not', async () => {
    const bytes = await written;
    const own = { ...JSON.parse(text), _name: 'mine' };
    const { model } = await openAll({ 'm.gguf': bytes, 'config.json': own, 'tokenizer.json': {} });
    expect(model.config!.raw.get('_name')).toBe('mine');
    expect(model.folder.files.map(({ path }) => path)).not.toContain('tokenizer_config.json');
    for (const other of [
      { model_type: 'llama' },
      { ...own, num_hidden_layers: 3 },
      { ...own, model_type: 'qwen2' },
    ]) {
      const made = await openAll({ 'm.gguf': bytes, 'config.json': other });
      expect(made.model.config!.layers).toBe(2);
      expect(made.model.config!.raw.has('_name')).toBe(false);
      const paths = made.model.folder.files.map(({ path }) => path);
      expect(paths.filter((path) => path === 'config.json')).toHaveLength(1);
      expect(paths).toEqual(expect.arrayContaining(['tokenizer.json', 'tokenizer_config.json']));
    }
  });

  test('a tokenizer that is not known is told of in the plan; the weights merge', async () => {
    const metadata = new Map([
      ...plan.metadata,
      ['tokenizer.ggml.pre', { type: 'text', value: 'zebra' }] as const,
    ]);
    const bytes = await ggufBytes({ ...plan, metadata }, weights);
    const folder = memoryFolder('m', { 'm.gguf': bytes });
    const { baseModel: _, ...recipe } = recipeOf(['m'], { mergeMethod: 'passthrough' });
    const { problems, extras } = await makePlan(recipe, openerOf(folder), methodById);
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(problems).toContainEqual(
      expect.objectContaining({
        ...{ severity: 'warning', code: 'TokenizerUnread', message: expect.stringContaining('“zebra”') },
        remedy: expect.stringContaining('Put the tokenizer.json'),
      }),
    );
    expect(extras.map(({ path }) => path)).not.toContain('tokenizer.json');
  });

  test('what it calls llama may be a mistral, which merges with a mistral in safetensors', async () => {
    const folder = memoryFolder('m', { 'm.gguf': await written });
    const mistral = memoryFolder('t', {
      'config.json': { ...JSON.parse(text), model_type: 'mistral', sliding_window: null },
      'model.safetensors': safetensors(
        Object.fromEntries([...weights].map(([name, { shape }]) => [name, ['F32', shape]])),
      ),
    });
    const { baseModel: _, ...recipe } = recipeOf(['m', 't'], { mergeMethod: 'linear' });
    const { problems } = await makePlan(recipe, openerOf(folder, mistral), methodById);
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  test('Ollama names its files by their hash; others stay where they are', async () => {
    const bytes = await written;
    const name = `sha256-${'0a'.repeat(32)}`;
    const { model } = await openAll({ [name]: bytes, LICENSE: 'text', 'mmproj-m.gguf': 'x' });
    expect(model.weightFiles.map(({ path }) => path)).toEqual([name]);
  });

  test('of a repository the file alone is downloaded, and the card links to it', async () => {
    const [repo, commit] = ['owner/name', '0123456789abcdef0123456789abcdef01234567'];
    const bytes = await written;
    const path = `${repo}/m.gguf@${commit}`;
    const folder = memoryFolder(path, { 'm.gguf': bytes }, { kind: 'hub', repo, revision: 'main', commit });
    const { baseModel: _, ...recipe } = recipeOf([path], { mergeMethod: 'passthrough' });
    const { problems, extras, bytesToDownload } = await makePlan(recipe, openerOf(folder), methodById);
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(bytesToDownload).toBe(bytes.length);
    expect(extras.map((extra) => extra.path)).toEqual(
      expect.arrayContaining(['config.json', 'tokenizer.json', 'tokenizer_config.json']),
    );
    const card = extras.find((extra) => extra.path === 'README.md')!.content;
    expect('text' in card && card.text).toContain(`huggingface.co/${repo}/tree/${commit}`);
  });

  test('what changes nothing is read over, and the end of a turn is an end', async () => {
    const more: [string, GgufValue][] = [
      ['llama.rope.scaling.type', { type: 'text', value: 'none' }],
      ['llama.rope.scaling.factor', { type: 'f32', value: 1 }],
      ['llama.attention.sliding_window', { type: 'u32', value: 4096 }],
      ['llama.vocab_size', { type: 'u32', value: 60 }],
      ['tokenizer.ggml.eos_token_id', { type: 'u32', value: 3 }],
      ['tokenizer.ggml.eot_token_id', { type: 'u32', value: 9 }],
    ];
    const metadata = new Map([...plan.metadata, ...more]);
    const { model } = await openAll({ 'm.gguf': await ggufBytes({ ...plan, metadata }, weights) });
    expect(resolveArchitecture(model.config!)).toEqual(asInFile(text));
    expect(JSON.parse(model.config!.text).eos_token_id).toEqual([3, 9]);
  });

  test('several models in one folder are not guessed between', async () => {
    const bytes = await written;
    await expect(openAll({ 'a.gguf': bytes, 'b.gguf': bytes })).rejects.toMatchObject({
      ...{ code: 'NotFound', message: expect.stringContaining('a.gguf, b.gguf') },
    });
  });

  test('a model in parts: all of them, in order', async () => {
    const part = (from: number, to: number, no: number) => {
      const names = [...plan.tensors.keys()].slice(from, to);
      const tensors = new Map(names.map((name) => [name, plan.tensors.get(name)!]));
      const split = [
        ['split.count', { type: 'u32', value: 2 }],
        ['split.no', { type: 'u32', value: no }],
      ] as const;
      const metadata = no === 0 ? [...plan.metadata, ...split] : split;
      const factors = no === 0 ? plan.factors : [];
      const own = { ...plan, tensors, factors, metadata: new Map(metadata as typeof split) };
      return ggufBytes(own, weights);
    };
    const [one, two] = [await part(0, 5, 0), await part(5, 999, 1)];
    const [first, second] = ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf'];
    const { model, bytesOf } = await openAll({ [second]: two, [first]: one });
    for (const [name, weight] of weights) {
      const read = await bytesOf(model.dequantized.tensors.get(name)!);
      expect(Buffer.compare(read, Buffer.from(weight.bytes)), name).toBe(0);
    }
    await expect(openAll({ [first]: one })).rejects.toMatchObject({
      ...{ code: 'NotFound', message: expect.stringContaining('one of 2 files') },
    });
    await expect(openAll({ [first]: one, [second]: one })).rejects.toMatchObject({ code: 'IndexInvalid' });
  });
});

describe('what the model cannot be told here is refused', () => {
  const changed = (change: (metadata: Map<string, GgufValue>) => void, tensors = plan.tensors) => {
    const metadata = new Map(plan.metadata);
    change(metadata);
    return ggufBytes({ ...plan, metadata, tensors }, weights);
  };
  const textValue = (value: string): GgufValue => ({ type: 'text', value });
  const lacking = new Map([...plan.tensors].slice(0, -2));
  const more = new Map(
    [...plan.tensors].map(([name, one]) => [
      name,
      one.name === 'output_norm.weight' ? { ...one, name: 'v.patch.weight' } : one,
    ]),
  );
  test.each<[string, () => Promise<Uint8Array>, string, RegExp]>([
    [
      'another architecture',
      () => changed((m) => m.set('general.architecture', textValue('bert'))),
      'GgufUnsupported',
      /“bert”/,
    ],
    [
      'a LoRA',
      () => changed((m) => m.set('general.type', textValue('adapter'))),
      'AdapterUnsupported',
      /LoRA/,
    ],
    ...['block_count', 'embedding_length', 'attention.key_length', 'attention.head_count'].map(
      (key): [string, () => Promise<Uint8Array>, string, RegExp] => [
        `${key} beyond all tensors`,
        () => changed((m) => m.set(`llama.${key}`, { type: 'u32', value: 2 ** 31 })),
        'ConfigInvalid',
        /too small for that/,
      ],
    ),
    [
      'a setting that nobody knows',
      () => changed((m) => m.set('llama.attention.zebra', { type: 'f32', value: 3 })),
      'GgufUnsupported',
      /llama\.attention\.zebra = 3/,
    ],
    [
      'a window that its graph follows and the model here does not',
      () => changed((m) => m.set('llama.attention.sliding_window', { type: 'u32', value: 8 })),
      'GgufUnsupported',
      /sliding_window = 8/,
    ],
    [
      'layers of their own widths',
      () =>
        changed((m) => m.set('llama.feed_forward_length', { type: 'array', of: 'i32', values: [48, 64] })),
      'GgufUnsupported',
      /llama\.feed_forward_length = 48, 64/,
    ],
    ['a tensor that lacks', () => changed(() => {}, lacking), 'TensorMissing', /lacks.*output_norm/],
    ['a tensor too many', () => changed(() => {}, more), 'TensorMissing', /lacks/],
    [
      'another shape',
      () => changed((m) => m.set('llama.attention.head_count_kv', { type: 'u32', value: 1 })),
      'ShapeMismatch',
      /attn_k/,
    ],
  ])('%s', async (_, bytes, code, message) => {
    const files = { 'm.gguf': await bytes() };
    await expect(openAll(files)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });
});
