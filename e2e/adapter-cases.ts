/** Adapters as PEFT writes them, and what PEFT merges them to: every case of a folder like the goldens `adapters`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { largestDifference, mergeInNode, readTensors, type Tensors } from './merge-in-node';

/** Relative to the largest value of a tensor. */
const TOLERANCE = 1e-6;
const EMBEDDING = 'model.embed_tokens.weight';
const HEAD = 'lm_head.weight';

/** Cases that cannot be merged → words of the refusal. */
export const REFUSED: Readonly<Record<string, RegExp>> = {
  'pissa-unconverted': /pissa.*changes the base/,
  'olora-unconverted': /olora.*changes the base/,
  'layer-replication': /layer_replication/,
  'v-conv-lora': /conv1d/,
  osf: /OSF adapter, which replaces the singular vectors/,
};

/**
 * Tied models, where PEFT adds to the one tensor both ends share; here the ends are as they were trained. What follows
 * from PEFT's embedding M and the base's W for ours, E and H: each of the sums is zero.
 */
const TIED: Readonly<Record<string, readonly ((ends: Ends) => Float32Array[])[]>> = {
  'tied-head': [({ E, W }) => [E!, W], ({ H, M }) => [H!, M]],
  'tied-embed-head': [({ E, H, W, M }) => [E!.map((e, i) => e + H![i]! - W[i]!), M]],
  // merge_and_unload adds the update at both ends of one tensor: twice the trained change
  'tied-embed-ensure': [({ E, W, M }) => [E!, W.map((w, i) => (w + M[i]!) / 2)]],
  'tied-embed-head-ensure': [({ E, W, M }) => [E!, W.map((w, i) => (w + M[i]!) / 2)]],
};
interface Ends {
  E?: Float32Array;
  H?: Float32Array;
  W: Float32Array;
  M: Float32Array;
}

export function adapterCases(root: string): string[] {
  return readdirSync(root).filter((kind) => existsSync(join(root, kind, 'adapter_config.json')));
}

const readFile = (...path: string[]): Tensors =>
  readTensors(new Uint8Array(readFileSync(join(...path))), path.at(-1)!);

/** Merges a case into its base. */
export async function mergeCase(root: string, kind: string): Promise<{ ours: Tensors; base: Tensors }> {
  const config = JSON.parse(readFileSync(join(root, kind, 'adapter_config.json'), 'utf8'));
  const base = config.base_model_name_or_path ?? 'bases/llama';
  const recipe = `merge_method: passthrough\nmodels:\n  - model: base+adapter\n`;
  const { tensors } = await mergeInNode(recipe, root, { base, adapter: kind }, 4096);
  return { ours: tensors, base: readFile(root, base, 'model.safetensors') };
}

/** Every tensor as PEFT has it; those that PEFT's file leaves out as the base has them. */
export async function expectPeft(root: string, kind: string): Promise<void> {
  const refused = REFUSED[kind];
  if (refused) {
    await expect(mergeCase(root, kind)).rejects.toThrow(refused);
    return;
  }
  const { ours, base } = await mergeCase(root, kind);
  const peft = kind === 'v-mlx' ? mlxMerged(root, kind, base) : readFile(root, kind, 'merged.safetensors');
  const tied = TIED[kind];
  const near = (name: string, a: Float32Array, b: Float32Array) =>
    expect(largestDifference(a, b).relative, `${kind}: ${name}`).toBeLessThanOrEqual(TOLERANCE);
  for (const name of new Set([...base.keys(), ...peft.keys(), ...ours.keys()])) {
    if (tied && (name === EMBEDDING || name === HEAD)) continue;
    near(name, ours.get(name)!.values, (peft.get(name) ?? base.get(name))!.values);
  }
  const values = (tensors: Tensors, name: string) => tensors.get(name)?.values;
  for (const rule of tied ?? []) {
    const [a, b] = rule({
      E: values(ours, EMBEDDING),
      H: values(ours, HEAD),
      W: values(base, EMBEDDING)!,
      M: values(peft, EMBEDDING)!,
    } as Ends);
    near('tied ends', a!, b!);
  }
}

/** Merge of an adapter by mlx_lm (tuner/lora.py, LoRALinear.fuse): W + scale · (a · b)ᵀ, in f64. */
function mlxMerged(root: string, kind: string, base: Tensors): Tensors {
  const { lora_parameters } = JSON.parse(readFileSync(join(root, kind, 'adapter_config.json'), 'utf8'));
  const factors = readFile(root, kind, 'adapters.safetensors');
  const merged: Tensors = new Map();
  for (const [key, a] of factors) {
    if (!key.endsWith('lora_a')) continue;
    const name = key.replace('lora_a', 'weight');
    const stored = base.get(name)!;
    const b = factors.get(key.replace('lora_a', 'lora_b'))!;
    const [outputs, inputs] = stored.shape as [number, number];
    const values = stored.values.map((w, i) => {
      const [o, c] = [Math.floor(i / inputs), i % inputs];
      let sum = 0;
      for (let k = 0; k < lora_parameters.rank; k++) {
        sum += a.values[c * lora_parameters.rank + k]! * b.values[k * outputs + o]!;
      }
      return w + lora_parameters.scale * sum;
    });
    merged.set(name, { ...stored, values });
  }
  return merged;
}
