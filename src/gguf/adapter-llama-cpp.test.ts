/** A LoRA as GGUF acts in llama.cpp on the base's file as it acts here, for every family. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SAMPLES } from '../../e2e/disk-folder';
import { hasLlama, llama, logProbabilities } from '../../e2e/llama-cpp';
import { ggufInNode } from '../../e2e/merge-in-node';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseModelConfig } from '../formats/model-config';
import { type FileTensor, goldenWeights, loadGolden } from '../forward/golden.test.fixture';
import { runOracle } from '../forward/oracle';
import { leavesOf } from '../models/claim';
import { familyOf } from '../models/families';
import { resolveArchitecture } from '../models/resolution';
import { scratchFolder } from '../scratch-folder.test.support';
import { type AdapterModule, planGgufAdapter } from './adapter-plan';
import { EXPRESSIBLE_GOLDENS, expressibleConfig, goldenLimit } from './expressible.test.support';
import { ggufEncoder, ggufFile } from './gguf-file';
import { type GgufPlan, planGguf } from './gguf-plan';
import { byteLevelTokenizer } from './tokenizer.test.support';

const root = join(import.meta.dirname, '../..');
const scratch = scratchFolder();

async function written(
  name: string,
  plan: GgufPlan,
  bytesOf: (tensor: string) => Uint8Array<ArrayBuffer>,
): Promise<string> {
  const order = [...plan.tensors.keys()];
  const file = ggufFile(name, plan, order);
  const parts: Uint8Array[] = [file.header];
  const encoder = ggufEncoder({
    plan,
    names: order,
    engines: [createCpuBackend()],
    write: async (bytes) => void parts.push(bytes.slice()),
  });
  for (const key of order) {
    await encoder.append(bytesOf(key));
    await encoder.finishTensor();
  }
  const path = join(scratch, name);
  writeFileSync(path, Buffer.concat(parts));
  return path;
}

/** Numbers in [−½, ½), the same every time. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

const f32 = (shape: readonly number[], values: Float32Array<ArrayBuffer>): FileTensor => ({
  dtype: 'F32',
  shape: [...shape],
  bytes: new Uint8Array(values.buffer),
});

/** Factors for every linear layer (of two ranks), the head and, where the head is not tied to it, the embedding. */
async function adapted(name: string) {
  const golden = await loadGolden(name, async (path) => Uint8Array.from(readFileSync(path)));
  const config = parseModelConfig(expressibleConfig(name, golden.config.text), 'config.json');
  const architecture = resolveArchitecture(config);
  const family = familyOf(architecture.modelType)!;
  const { embedding, final, vocab, hidden } = architecture;
  const random = draws(name.length);
  const modules: AdapterModule[] = [];
  const factors = new Map<string, FileTensor>();
  const weights = new Map(golden.weights);
  const add = (
    weight: string,
    [rows, columns]: [number, number],
    isTransposed: boolean,
    isLookup: boolean,
  ) => {
    const module = weight.replace(/\.weight$/, '');
    const rank = modules.length % 2 === 0 ? 2 : 3;
    const [inputs, outputs] = isLookup ? [rows, columns] : [columns, rows];
    const a = Float32Array.from({ length: rank * inputs }, random);
    const b = Float32Array.from({ length: outputs * rank }, () => 0.2 * random());
    const parts = [
      { name: `${module}.A`, shape: [rank, inputs], dtype: 'F32' as const },
      { name: `${module}.B`, shape: [outputs, rank], dtype: 'F32' as const },
    ] as const;
    modules.push({ module, kind: isLookup ? 'embedding' : 'linear', rank, a: parts[0], b: parts[1] });
    factors.set(parts[0].name, f32(parts[0].shape, a));
    factors.set(parts[1].name, f32(parts[1].shape, b));
    const key = [weight, weight.slice(family.prefix.length)].find((each) => weights.has(each))!;
    const stored = weights.get(key)!;
    const sum = Float32Array.from(goldenWeights(architecture, golden.weights)(weight));
    for (let o = 0; o < outputs; o++) {
      for (let i = 0; i < inputs; i++) {
        let delta = 0;
        for (let k = 0; k < rank; k++) delta += b[o * rank + k]! * a[k * inputs + i]!;
        sum[isLookup || isTransposed ? i * outputs + o : o * inputs + i]! += delta;
      }
    }
    weights.set(key, f32(stored.shape, sum));
  };
  for (const { weight, inputs, outputs, storage } of leavesOf(architecture.blocks).linears) {
    add(weight, [outputs, inputs], storage === 'in_out', false);
  }
  if (!final.tied) {
    add(final.head, [vocab, hidden], false, false);
    add(embedding.token, [vocab, hidden], false, true);
  }
  return { golden, config: config.text, architecture, modules, factors, weights };
}

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('a LoRA in llama.cpp', () => {
  test.each(EXPRESSIBLE_GOLDENS)('%s', async (name) => {
    const { golden, config, architecture, modules, factors, weights } = await adapted(name);
    const model = planGguf({
      ...{ type: 'F32', name: 'golden', config },
      tokenizer: { tokenizer: byteLevelTokenizer(architecture.vocab) },
      tensors: [...golden.weights].map(([key, { dtype, shape }]) => ({
        name: key,
        dtype: dtype as 'F32',
        shape,
      })),
    });
    const base = await written(`${name}.gguf`, model, (key) => golden.weights.get(key)!.bytes.slice());
    const lora = planGgufAdapter({ type: 'F32', name: 'lora', config, modules });
    const path = await written(`${name}-lora.gguf`, lora, (key) => factors.get(key)!.bytes.slice());
    const ids = golden.ids.slice(0, 8);
    const of = (stored: Map<string, FileTensor>) =>
      logProbabilities(
        runOracle(architecture, goldenWeights(architecture, stored), ids).logits.flatMap((row) => [...row]),
        architecture.vocab,
      );
    const opened = llama().open(base);
    try {
      const there = logProbabilities(opened.logits(ids, path), opened.vocabulary);
      const far = (expected: Float64Array) =>
        expected.reduce((most, value, i) => Math.max(most, Math.abs(value - there[i]!)), 0);
      expect(far(of(weights))).toBeLessThan(goldenLimit(name));
      expect(far(of(golden.weights))).toBeGreaterThan(0.05);
    } finally {
      opened.close();
    }
  });
});

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
test.runIf(hasLlama)('two LoRAs of the sample, made one, are its merge there', async () => {
  const folders = { base: 'base', kitchen: 'kitchen', harbour: 'harbour' };
  const recipe = (more: string) => `merge_method: task_arithmetic
base_model: base
out_dtype: float32
models:
  - {model: base+kitchen, parameters: {weight: 0.7}}
  - {model: base+harbour, parameters: {weight: -0.4}}
amalgam: {gguf: F32, gguf_only: true${more}}
`;
  const whole = 'merge_method: passthrough\nmodels: [{model: base}]\namalgam: {gguf: F32, gguf_only: true}\n';
  const files = await Promise.all(
    [recipe(''), whole, recipe(', output: adapter')].map(async (text, i) => {
      const path = join(scratch, `sample-${i}.gguf`);
      writeFileSync(path, (await ggufInNode(text, SAMPLES, folders)).bytes);
      return path;
    }),
  );
  const logits = (file: string, lora?: string) => {
    const model = llama().open(file);
    try {
      const ids = model.tokenize('In the harbour a kettle', true);
      return logProbabilities(model.logits(ids, lora), model.vocabulary);
    } finally {
      model.close();
    }
  };
  const [merged, alone, adapted] = [logits(files[0]!), logits(files[1]!), logits(files[1]!, files[2])];
  const far = (a: Float64Array, b: Float64Array) =>
    a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);
  expect(far(adapted, merged)).toBeLessThan(1e-3);
  expect(far(alone, merged)).toBeGreaterThan(0.05);
});

describe('a LoRA that has no GGUF', () => {
  const config = readFileSync(join(root, 'public/samples/base/config.json'), 'utf8');
  const { hidden, vocab } = resolveArchitecture(parseModelConfig(config, 'config.json'));
  const one = (
    module: string,
    kind: AdapterModule['kind'],
    rows: number,
    columns: number,
  ): AdapterModule => ({
    ...{ module, kind, rank: 2 },
    a: { name: 'a', shape: [2, columns], dtype: 'F32' },
    b: { name: 'b', shape: [rows, 2], dtype: 'F32' },
  });
  const plan = (type: 'F16' | 'Q4_K_M', module: AdapterModule) => () =>
    planGgufAdapter({ type, name: 'lora', config, modules: [module] });

  test.each([
    ['a type of few bits', plan('Q4_K_M', one('model.layers.0.mlp.up_proj', 'linear', 1, 1)), /Q4_K_M/],
    ['a module nobody has', plan('F16', one('model.layers.0.mlp.gate', 'linear', 1, hidden)), /mlp\.gate/],
    [
      'factors of another size',
      plan('F16', one('model.layers.0.self_attn.q_proj', 'linear', 1, hidden)),
      /the base has/,
    ],
    ['a tied embedding', plan('F16', one('model.embed_tokens', 'embedding', hidden, vocab)), /tied/],
  ])('%s', (_, refused, message) => {
    expect(refused).toThrow(
      expect.objectContaining({ code: 'GgufUnsupported', message: expect.stringMatching(message) }),
    );
  });
});
