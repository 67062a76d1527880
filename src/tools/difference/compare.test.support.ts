/** Small models in memory whose weights are given, for tests of comparing and extracting. */
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { type WeightDtype, weightBytes } from '../../formats/dtype';
import { encodeFromF32 } from '../../formats/half';
import { buildSafetensorsHeader, sortForFile } from '../../formats/safetensors-write';
import { inputsOf } from '../../host/threads.test.support';
import type { Inputs } from '../../host/weight-inputs';
import { memoryFolder } from '../../inputs/memory-models.test.support';
import { openModel } from '../../inputs/opened-model';
import type { ReadTensor } from '../../inputs/stored-tensor';
import { gaussian } from '../../merge/tensor/decomposition';
import type { ModelFolder } from '../../sources/model-folder';
import { openSides, type Sides } from './compare-models';
import type { CompareOptions } from './compare-tensors';

export interface Weights {
  shape: number[];
  values: Float32Array<ArrayBuffer>;
}

/** A safetensors file. */
export function weightFile(
  weights: Readonly<Record<string, Weights>>,
  dtype: WeightDtype = 'F32',
): Uint8Array<ArrayBuffer> {
  const tensors = sortForFile(
    Object.entries(weights).map(([name, { shape, values }]) => ({
      name,
      dtype,
      shape,
      byteLength: values.length * weightBytes(dtype),
    })),
  );
  const header = buildSafetensorsHeader(tensors, {});
  const file = new Uint8Array(tensors.reduce((n, t) => n + t.byteLength, header.length));
  file.set(header);
  let at = header.length;
  for (const { name } of tensors) {
    const { values } = weights[name]!;
    const bytes = new Uint8Array(values.length * weightBytes(dtype));
    encodeFromF32(values, dtype, bytes);
    file.set(bytes, at);
    at += bytes.byteLength;
  }
  return file;
}

/** Gaussian weights of a size, different for every seed. */
export function random(shape: number[], size: number, seed: number): Weights {
  const n = shape.reduce((product, extent) => product * extent, 1);
  return { shape, values: Float32Array.from(gaussian(n, 1, [seed, 99]).data, (x) => x * size) };
}

export function zeros(shape: number[]): Weights {
  return { shape, values: new Float32Array(shape.reduce((product, extent) => product * extent, 1)) };
}

/** a + scale · b */
export function plus(a: Weights, b: Weights, scale = 1): Weights {
  return { shape: a.shape, values: a.values.map((x, i) => x + scale * b.values[i]!) };
}

/** A product of two random factors of `rank`. */
export function lowRankDelta(
  [rows, cols]: [number, number],
  rank: number,
  size: number,
  seed: number,
): Weights {
  const l = gaussian(rows, rank, [seed, 1]);
  const r = gaussian(cols, rank, [seed, 2]);
  const out = zeros([rows, cols]);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) {
      let sum = 0;
      for (let k = 0; k < rank; k++) sum += l.data[k * rows + i]! * r.data[k * cols + j]!;
      out.values[i * cols + j] = size * sum;
    }
  }
  return out;
}

/** A Llama config that fits nothing in particular. */
export const CONFIG = {
  model_type: 'llama',
  architectures: ['LlamaForCausalLM'],
  hidden_size: 24,
  num_hidden_layers: 1,
  vocab_size: 40,
  tie_word_embeddings: false,
  torch_dtype: 'float32',
};

export function modelFolder(
  path: string,
  weights: Readonly<Record<string, Weights>>,
  config: Record<string, unknown> = CONFIG,
  files: Record<string, string | object> = {},
  dtype: WeightDtype = 'F32',
): ModelFolder {
  return memoryFolder(path, {
    'config.json': config,
    'model.safetensors': weightFile(weights, dtype),
    'tokenizer.json': '{"model":{}}',
    ...files,
  });
}

/** Both sides of a comparison and their files. */
export async function sidesOf(
  folders: readonly ModelFolder[],
  base = 'base',
  finetuned = 'tuned',
): Promise<Sides & { inputs: Inputs; read: ReadTensor }> {
  const find = (path: string) => folders.find((folder) => folder.path === path)!;
  const sides = await openSides(base, finetuned, (path) => openModel(find(path)));
  const inputs = inputsOf(folders);
  return { ...sides, inputs, read: inputs.read };
}

/** Options of a comparison on the processor. */
export function optionsOf(
  { base, tuned, inputs, read }: Sides & { inputs: Inputs; read: ReadTensor },
  more: Partial<CompareOptions> = {},
): CompareOptions {
  return {
    base,
    tuned,
    inputs: { ...inputs, read },
    engine: createCpuBackend(),
    threshold: 1e-6,
    loraAnalysis: true,
    seed: 0,
    ...more,
  };
}
