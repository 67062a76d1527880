/** What the writer makes of a model is read as that model: weights to the bit, and every number that the forward pass uses. */
import { describe, expect, test } from 'vitest';
import { parseModelConfig } from '../formats/model-config';
import type { FileTensor } from '../forward/golden.test.fixture';
import { ggufBytes, noise, tinyConfig, tinyPlan } from '../gguf/tiny-models.test.support';
import type { Architecture } from '../models/architecture';
import { GGUF_ARCHITECTURES } from '../models/gguf-architectures';
import { resolveArchitecture } from '../models/resolution';
import type { Checkpoint } from './checkpoint';
import { memoryFolder } from './memory-models.test.support';
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
