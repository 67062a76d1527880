/** Merges of adapters into an adapter, against PEFT's `add_weighted_adapter`: every case of a folder with `cases.json`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { COMBINATIONS_OF } from '../src/formats/adapter-combination';
import type { Prepared } from '../src/merge/tensor/prepared';
import { mergeInNode, type NamedFolders, planInNode, readTensors, type Tensors } from './merge-in-node';

export interface OutputCase {
  name: string;
  adapters: string[];
  weights: number[];
  combination_type: string;
  svd_rank?: number;
  density?: number;
  majority_sign_method?: string;
}

export function outputCases(root: string): OutputCase[] {
  return JSON.parse(readFileSync(join(root, 'cases.json'), 'utf8'));
}

/** The recipe of a case, with the base that the adapters stand on where one is given. */
export function recipeOf(
  { adapters, weights, combination_type, svd_rank, density = 1, majority_sign_method }: OutputCase,
  output: 'adapter' | 'model' = 'adapter',
): string {
  const [method] = Object.entries(COMBINATIONS_OF).find(([, all]) =>
    all.some((c) => c === combination_type),
  )!;
  return stringify({
    merge_method: method,
    base_model: 'base',
    models: adapters.map((name, i) => ({
      model: `base+${name}`,
      parameters: { weight: weights[i]!, ...(density < 1 ? { density } : {}) },
    })),
    ...(majority_sign_method ? { parameters: { majority_sign_method } } : {}),
    ...(output === 'adapter'
      ? { amalgam: { output, combination: combination_type, ...(svd_rank ? { rank: svd_rank } : {}) } }
      : {}),
  });
}

const inputs = (root: string, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, join(root, 'inputs', name)]));

/** The base is no folder: what asks for it fails. */
export async function mergedAdapter(root: string, given: OutputCase): Promise<Tensors> {
  const folders = { ...inputs(root, given.adapters), base: join(root, 'no base is read') };
  const { plan } = await planInNode(recipeOf(given), root, folders);
  expect(plan.shards.map(({ file }) => file)).toEqual(['adapter_model.safetensors']);
  expect(plan.inputs.map(({ folder }) => folder).sort()).toEqual([...given.adapters].sort());
  const { tensors } = await mergeInNode(recipeOf(given), root, folders);
  return tensors;
}

/** B · A of every module, scaled by α/r of the config, in f64. */
export function products(tensors: Tensors, config: Record<string, unknown>): Map<string, Float64Array> {
  const out = new Map<string, Float64Array>();
  for (const [name, a] of tensors) {
    if (!name.endsWith('.lora_A.weight')) continue;
    const module = name.slice('base_model.model.'.length, -'.lora_A.weight'.length);
    const b = tensors.get(name.replace('lora_A', 'lora_B'))!;
    const [rank, inputs_] = a.shape as [number, number];
    const pattern = (key: string) =>
      Object.entries((config[key] ?? {}) as Record<string, number>).find(([p]) =>
        new RegExp(`(.*\\.)?(${p})$`).test(module),
      )?.[1];
    const alpha = pattern('alpha_pattern') ?? (config.lora_alpha as number);
    const scale = config.use_rslora ? alpha / Math.sqrt(rank) : alpha / rank;
    const delta = new Float64Array((b.values.length / rank) * inputs_);
    for (let o = 0; o < b.values.length / rank; o++) {
      for (let k = 0; k < rank; k++) {
        for (let c = 0; c < inputs_; c++) {
          delta[o * inputs_ + c]! += scale * b.values[o * rank + k]! * a.values[k * inputs_ + c]!;
        }
      }
    }
    out.set(module, delta);
  }
  return out;
}

/** Ours and PEFT's update of every module, by B · A: factors of singular values are unique up to their signs only. */
export async function expectPeftMerge(root: string, given: OutputCase): Promise<void> {
  const ours = await mergedAdapter(root, given);
  const { plan } = await planInNode(recipeOf(given), root, inputs(root, given.adapters));
  const written = plan.extras.find(({ path }) => path === 'adapter_config.json')!.content as { text: string };
  const read = (name: string) => readFileSync(join(root, given.name, name));
  const peft = readTensors(new Uint8Array(read('adapter_model.safetensors')), given.name);
  const mine = products(ours, JSON.parse(written.text));
  const theirs = products(peft, JSON.parse(read('adapter_config.json').toString()));
  expect([...mine.keys()].sort()).toEqual([...theirs.keys()].sort());
  for (const [module, delta] of theirs) {
    const largest = delta.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    const apart = delta.reduce((most, v, i) => Math.max(most, Math.abs(v - mine.get(module)![i]!)), 0);
    expect(apart / largest, `${given.name}: ${module}`).toBeLessThan(
      given.combination_type.endsWith('svd') ? 2e-6 : 1e-6,
    );
  }
}

/** The adapter that a recipe gives, as a folder that can be opened, and its tensors. */
export async function written(root: string, yaml: string, given: NamedFolders, prepared?: Prepared) {
  const { plan } = await planInNode(yaml, root, given);
  const { shards, tensors } = await mergeInNode(yaml, root, given, undefined, prepared);
  const text = (plan.extras.find(({ path }) => path === 'adapter_config.json')!.content as { text: string })
    .text;
  const files = [
    ['adapter_config.json', new TextEncoder().encode(text)],
    ['adapter_model.safetensors', shards[0]!],
  ] as const;
  const adapterFolder = {
    path: 'merged',
    origin: { kind: 'local' as const },
    files: files.map(([path, bytes]) => ({
      path,
      byteLength: bytes.length,
      open: () => ({
        byteLength: bytes.length,
        read: async (begin: number, end: number) => new Uint8Array(bytes.slice(begin, end)),
      }),
    })),
  };
  return { adapterFolder, tensors };
}
