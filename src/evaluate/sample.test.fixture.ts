/** The sample family of public/samples, read from disk. */

import { readFileSync } from 'node:fs';
import { SAMPLES } from '../../e2e/disk-folder';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { createTokenizer } from '../foreign/tokenizer';
import { parseModelConfig } from '../formats/model-config';
import { type FileTensor, readTensors, values } from '../forward/golden.test.fixture';
import { openRunner, type Runner, type RunnerOptions } from '../forward/runner';
import { sourceOf } from '../forward/runner.test.cases';
import type { LowRankUpdate } from '../forward/weight-source';
import { resolveArchitecture } from '../models/resolution';

export const readText = (path: string) => readFileSync(`${SAMPLES}/${path}`, 'utf8');
const readBytes = (path: string) => new Uint8Array(readFileSync(`${SAMPLES}/${path}`));

export const sampleTokenizer = createTokenizer(
  {
    tokenizer: readText('base/tokenizer.json'),
    config: readText('base/tokenizer_config.json'),
    hasSentencePiece: false,
  },
  'samples/base',
);

/** Ids of a text with BOS in front. */
export const encodeText = (text: string) => [...sampleTokenizer.prefix, ...sampleTokenizer.encode(text)];

const readModel = (name: string) => readTensors(readBytes(`${name}/model.safetensors`));

/**
 * `base`, `workshop`, an adapter on the base (`base+kitchen`), or `task arithmetic, weight 0.5`: base + 0.5 · the three
 * differences, not rounded.
 */
export function openSample(model: string, options: RunnerOptions = {}, engine = createCpuBackend()): Runner {
  const config = parseModelConfig(readText('base/config.json'), 'config.json');
  const [checkpoint, adapter] = model.split('+') as [string, string?];
  const source =
    model === 'task arithmetic, weight 0.5'
      ? sourceOf(mergeSamples(0.5))
      : sourceOf(readModel(checkpoint), adapter === undefined ? undefined : readAdapter(adapter));
  return openRunner(engine, resolveArchitecture(config), source, options);
}

function mergeSamples(weight: number): Map<string, FileTensor> {
  const tuned = readModel('workshop');
  const adapters = ['kitchen', 'harbour'].map(readAdapter);
  return new Map(
    [...readModel('base')].map(([name, t]) => {
      const sum = values(tuned.get(name)!);
      const base = values(t);
      for (let i = 0; i < sum.length; i++) sum[i]! -= base[i]!;
      for (const adapter of adapters) {
        const update = adapter.get(name);
        if (update) addProduct(sum, t.shape as [number, number], update);
      }
      const merged = Float32Array.from(base, (v, i) => v + weight * sum[i]!);
      return [name, { dtype: 'F32', shape: t.shape, bytes: new Uint8Array(merged.buffer) }];
    }),
  );
}

function addProduct(sum: Float64Array, [rows, cols]: [number, number], update: AdapterUpdate): void {
  const { left, right, rank, scale } = update;
  for (let r = 0; r < rows; r++) {
    for (let k = 0; k < rank; k++) {
      const l = scale * left[r * rank + k]!;
      for (let c = 0; c < cols; c++) sum[r * cols + c]! += l * right[k * cols + c]!;
    }
  }
}

type AdapterUpdate = LowRankUpdate & { left: Float32Array; right: Float32Array };

/** The low-rank updates of a plain PEFT adapter by the weight they belong to. */
function readAdapter(name: string): Map<string, AdapterUpdate> {
  const settings = JSON.parse(readText(`${name}/adapter_config.json`)) as { r: number; lora_alpha: number };
  const tensors = readTensors(readBytes(`${name}/adapter_model.safetensors`));
  const floats = (key: string) => Float32Array.from(values(tensors.get(key)!));
  const modules = [...tensors.keys()].flatMap(
    (key) => /^base_model\.model\.(.*)\.lora_A\.weight$/.exec(key)?.[1] ?? [],
  );
  return new Map(
    modules.map((module) => {
      const left = floats(`base_model.model.${module}.lora_B.weight`);
      const right = floats(`base_model.model.${module}.lora_A.weight`);
      const scale = settings.lora_alpha / settings.r;
      return [
        `${module}.weight`,
        { rank: settings.r, scale, left, right, load: async () => ({ left, right }) },
      ];
    }),
  );
}
