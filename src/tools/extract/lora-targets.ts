/** PEFT's carriers for each changed tensor: factors, a whole module, a bias of lora_B, or none. */

import type { Model } from '../../inputs/model';
import { memoryName } from '../../models/aliases';
import { tensorKey } from '../../models/families';
import { isBuffer, splitLayer, tensorRole } from '../../models/tensor-role';
import type { ExtractLoraRequest } from './report';

export type LoraSettings = Required<
  Pick<ExtractLoraRequest, 'include' | 'exclude' | 'embeddings' | 'vectors'>
>;

export type Target =
  | { carrier: 'factors'; module: string; kind: 'linear' | 'embedding'; transposed: boolean }
  /** The whole module, in `modules_to_save`. */
  | { carrier: 'saved'; module: string }
  | { carrier: 'bias'; module: string }
  | { carrier: 'none'; why: string };

/** Routers of mixtures of experts, which are no linear layers in transformers 5: PEFT only takes them whole. */
const ROUTER = /\.(?:mlp|block_sparse_moe|feed_forward)\.(?:gate|router)\.(?:weight|bias)$/;

/**
 * Carrier of a tensor of the base in the adapter.
 *
 * @param key name without the family's prefix, as in `Model.tensors`
 */
export function targetOf(
  { name, shape }: { name: string; shape: readonly number[] },
  key: string,
  base: Model,
  settings: LoraSettings,
): Target {
  const { kind } = tensorRole(name, shape);
  if (isBuffer(name)) return { carrier: 'none', why: 'it is a buffer, which follows from the config' };
  const [, path, part] = /^(.+)\.(weight|bias)$/.exec(peftName(name, key, base)) ?? [];
  if (path === undefined) return { carrier: 'none', why: 'it is no weight or bias of a module' };
  if (!isWanted(path, settings)) return { carrier: 'none', why: 'its module is left out on request' };
  const isEnd = key === base.embedding || key === base.head || kind === 'embedding' || kind === 'head';
  if (isEnd) {
    if (settings.embeddings === 'skip')
      return { carrier: 'none', why: 'embeddings and heads are left out on request' };
    const isToken = key === base.embedding;
    if (
      settings.embeddings === 'lora' &&
      part === 'weight' &&
      shape.length === 2 &&
      (isToken || key === base.head)
    ) {
      return {
        carrier: 'factors',
        module: path,
        kind: isToken ? 'embedding' : 'linear',
        transposed: isToken,
      };
    }
    return { carrier: 'saved', module: path };
  }
  if (part === 'bias' && isMatrix(base, key.replace(/bias$/, 'weight')))
    return { carrier: 'bias', module: path };
  if (/\.experts\.\d+\./.test(name))
    return {
      carrier: 'none',
      why: 'transformers fuses the experts when it loads them, so PEFT has no such module',
    };
  if (part === 'weight' && shape.length === 2 && !ROUTER.test(name)) {
    const { family } = base.checkpoint;
    const transposed = family?.linearStorage === 'in_out' && splitLayer(name) !== null;
    return { carrier: 'factors', module: path, kind: 'linear', transposed };
  }
  if (ROUTER.test(name)) return { carrier: 'saved', module: path };
  if (shape.length > 2)
    return { carrier: 'none', why: `it has ${shape.length} dimensions, and factors make matrices` };
  if (settings.vectors === 'skip') return { carrier: 'none', why: 'vectors are left out on request' };
  return { carrier: 'saved', module: path };
}

/**
 * The name a tensor has in the model that transformers loads: a checkpoint of the bare model lacks the family's prefix,
 * which everything but the head then gets.
 */
export function peftName(name: string, key: string, { checkpoint, tensors, head }: Model): string {
  const { family, config } = checkpoint;
  const inMemory = memoryName(name, config?.modelType);
  if (!family || inMemory.startsWith(family.prefix) || key === head) return inMemory;
  const isBare = ![...tensors.values()].some((tensor) => tensor.name.startsWith(family.prefix));
  return isBare ? family.prefix + inMemory : inMemory;
}

/** Paths of all modules of a model with a matrix for a weight. */
export function matrixModules(model: Model): string[] {
  return [...model.tensors]
    .filter(([key, { shape }]) => shape.length === 2 && key.endsWith('.weight'))
    .map(([key, { name }]) => peftName(name, key, model).replace(/\.weight$/, ''));
}

/** True for a module of the base that has a bias. */
export function hasBias(base: Model, module: string): boolean {
  return base.tensors.has(tensorKey(`${module}.bias`, base.checkpoint.family));
}

function isMatrix(base: Model, key: string): boolean {
  return base.tensors.get(key)?.shape.length === 2;
}

function isWanted(module: string, { include, exclude }: LoraSettings): boolean {
  const has = (parts: readonly string[]) => parts.some((part) => module.includes(part));
  return (include.length === 0 || has(include)) && !has(exclude);
}
