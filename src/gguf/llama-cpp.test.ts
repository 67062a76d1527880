/** What is written loads in llama.cpp and says there what the model says here. */

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { SAMPLES, smallSample } from '../../e2e/disk-folder';
import { hasLlama, type LlamaModel, llama, logProbabilities } from '../../e2e/llama-cpp';
import { ggufInNode, mergeInNode } from '../../e2e/merge-in-node';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { createTokenizer } from '../foreign/tokenizer';
import { GGUF_TYPES } from '../formats/gguf-type';
import { parseModelConfig } from '../formats/model-config';
import { type FileTensor, goldenWeights, loadGolden } from '../forward/golden.test.fixture';
import { runOracle } from '../forward/oracle';
import { plainBlocks } from '../models/plain-block';
import { resolveArchitecture } from '../models/resolution';
import { scratchFolder } from '../scratch-folder.test.support';
import type { ModelFolder } from '../sources/model-folder';
import {
  EXPRESSIBLE_GOLDENS,
  expressibleConfig,
  goldenLimit,
  REFUSED_GOLDENS,
} from './expressible.test.support';
import { ggufEncoder, ggufFile } from './gguf-file';
import { planGguf } from './gguf-plan';
import { byteLevelTokenizer } from './tokenizer.test.support';

const scratch = scratchFolder();

let files = 0;
/** Runs `look` on a file that llama.cpp has opened. */
function opened<T>(bytes: Uint8Array, look: (model: LlamaModel) => T): T {
  const path = join(scratch, `${files++}.gguf`);
  writeFileSync(path, bytes);
  const model = llama().open(path);
  try {
    return look(model);
  } finally {
    model.close();
    rmSync(path);
  }
}

function furthest(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  let most = 0;
  for (let i = 0; i < a.length; i++) {
    const distance = Math.abs(a[i]! - b[i]!);
    if (!(distance <= most)) most = distance;
  }
  return most;
}

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('the merged sample', () => {
  const recipe = (more: string) => `merge_method: ties
base_model: base
models:
  - {model: workshop, parameters: {weight: 0.6, density: 0.5}}
  - {model: base+harbour, parameters: {weight: 0.4, density: 0.5}}
amalgam: {${more}}
`;
  const small = (name: string) => smallSample(name, join(SAMPLES, name), { layers: 2 });
  let folders: Record<string, ModelFolder>;
  beforeAll(async () => {
    const [base, workshop, harbour] = await Promise.all(['base', 'workshop', 'harbour'].map(small));
    folders = { base: base!, workshop: workshop!, harbour: harbour! };
  });
  const text = readFileSync(join(SAMPLES, 'texts/workshop.eval.txt'), 'utf8').slice(0, 160);
  const tokenizer = createTokenizer(
    { tokenizer: readFileSync(join(SAMPLES, 'base/tokenizer.json'), 'utf8'), hasSentencePiece: false },
    'base',
  );
  const ids = [...tokenizer.prefix, ...tokenizer.encode(text)];

  /** Log probabilities of the merge as it is written in safetensors, in f64. */
  const here = async () => {
    const merged = await mergeInNode(recipe(''), SAMPLES, folders);
    const architecture = resolveArchitecture(parseModelConfig(merged.config!, 'config.json'));
    const weights = new Map<string, FileTensor>(
      [...merged.tensors].map(([name, { dtype, shape, bytes }]) => [
        name,
        { dtype, shape, bytes: bytes as Uint8Array<ArrayBuffer> },
      ]),
    );
    return (of: readonly number[]) => {
      const { logits } = runOracle(architecture, goldenWeights(architecture, weights), of);
      return logProbabilities(
        logits.flatMap((row) => [...row]),
        architecture.vocab,
      );
    };
  };

  test('has the same ids, the same log probabilities and the same greedy text in F32', async () => {
    const run = await here();
    const { bytes } = await ggufInNode(recipe('gguf: F32, gguf_only: true'), SAMPLES, folders);
    opened(bytes, (model) => {
      expect(model.tokenize(text, true)).toEqual(ids);
      const expected = run(ids);
      expect(furthest(logProbabilities(model.logits(ids), model.vocabulary), expected)).toBeLessThan(1e-3);
      let there = ids.slice(0, 10);
      for (let i = 0; i < 12; i++) there = [...there, greedy(model.logits(there), model.vocabulary).at(-1)!];
      const mine = greedy(run(there), model.vocabulary);
      expect(mine.slice(9, -1)).toEqual(there.slice(10));
    });
  });

  const written = async (type: string) => {
    const { bytes } = await ggufInNode(recipe(`gguf: ${type}, gguf_only: true`), SAMPLES, folders);
    return opened(bytes, (model) => logProbabilities(model.logits(ids), model.vocabulary));
  };
  let truth: ReturnType<typeof written> | undefined;

  test.each(GGUF_TYPES.filter((type) => type !== 'F32'))('is near it in %s', async (type) => {
    truth ??= written('F32');
    const most = { F16: 0.05, BF16: 0.3, Q8_0: 1 } as Record<string, number>;
    expect(furthest(await written(type), await truth)).toBeLessThan(most[type] ?? 8);
  });
});

/** The likeliest next token at every position. */
function greedy(logits: ArrayLike<number>, vocabulary: number): number[] {
  return Array.from({ length: logits.length / vocabulary }, (_, row) => {
    let best = row * vocabulary;
    for (let i = best; i < (row + 1) * vocabulary; i++) if (logits[i]! > logits[best]!) best = i;
    return best % vocabulary;
  });
}

/** llama.cpp follows their windows; of the others only what is within the window is compared. */
const HAS_WINDOWS = /^gemma[23]/;
// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('architectures', () => {
  const load = (name: string) => loadGolden(name, async (path) => Uint8Array.from(readFileSync(path)));
  const request = async (name: string) => {
    const golden = await load(name);
    const config = parseModelConfig(expressibleConfig(name, golden.config.text), 'config.json');
    const tensors = [...golden.weights].map(([key, { dtype, shape }]) => ({
      name: key,
      dtype: dtype as 'F32',
      shape,
    }));
    const rows = resolveArchitecture(golden.config).vocab;
    return {
      golden,
      config,
      plan: () =>
        planGguf({
          type: 'F32',
          name: 'golden',
          config: config.text,
          tokenizer: { tokenizer: byteLevelTokenizer(rows) },
          tensors,
        }),
    };
  };

  test.each(EXPRESSIBLE_GOLDENS)('%s', async (name) => {
    const { golden, config, plan } = await request(name);
    const gguf = plan();
    const order = [...gguf.tensors.keys()];
    const file = ggufFile('m.gguf', gguf, order);
    const parts: Uint8Array[] = [file.header];
    const encoder = ggufEncoder({
      plan: gguf,
      names: order,
      engines: [createCpuBackend()],
      write: async (bytes) => void parts.push(bytes.slice()),
    });
    for (const key of order) {
      const { bytes } = golden.weights.get(key)!;
      const half = Math.floor(bytes.length / 2);
      await encoder.append(bytes.slice(0, half));
      await encoder.append(bytes.slice(half));
      await encoder.finishTensor();
    }
    const bytes = Buffer.concat(parts);
    expect(bytes.length).toBe(file.byteLength);
    const architecture = resolveArchitecture(config);
    const windows = plainBlocks(architecture).flatMap(({ attention }) => attention.window ?? []);
    const ids = golden.ids.slice(0, HAS_WINDOWS.test(name) ? 24 : Math.min(24, ...windows));
    const { logits } = runOracle(architecture, goldenWeights(architecture, golden.weights), ids);
    const expected = logProbabilities(
      logits.flatMap((row) => [...row]),
      architecture.vocab,
    );
    const there = opened(bytes, (model) => logProbabilities(model.logits(ids), model.vocabulary));
    expect(furthest(there, expected)).toBeLessThan(goldenLimit(name));
  });

  test.each(REFUSED_GOLDENS)('%s is refused', async (name) => {
    const { plan } = await request(name);
    expect(plan).toThrow(expect.objectContaining({ code: 'GgufUnsupported' }));
  });
});
