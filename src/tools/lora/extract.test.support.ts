/** A small Llama and changes of it, for tests of extracting. */
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import type { ModelFolder } from '../../sources/model-folder';
import {
  CONFIG,
  lowRankDelta,
  modelFolder,
  plus,
  random,
  sidesOf,
  type Weights,
} from '../difference/compare.test.support';
import { type ExtractedLora, extractLora } from './extract-lora';
import type { ExtractOptions } from './lora-modules';

export type Model = Record<string, Weights>;
export const layer = (module: string) => `model.layers.0.${module}`;
export const Q = layer('self_attn.q_proj.weight');
export const K = layer('self_attn.k_proj.weight');
export const DOWN = layer('mlp.down_proj.weight');
export const NORM = layer('input_layernorm.weight');
export const FINAL = 'model.norm.weight';
export const EMBEDDING = 'model.embed_tokens.weight';
export const HEAD = 'lm_head.weight';

export const base: Model = {
  [EMBEDDING]: random([40, 24], 0.1, 1),
  [Q]: random([24, 24], 0.1, 2),
  [K]: random([12, 24], 0.1, 3),
  [DOWN]: random([24, 32], 0.1, 4),
  [NORM]: random([24], 1, 5),
  [FINAL]: random([24], 1, 6),
  [HEAD]: random([40, 24], 0.1, 7),
};

/** The model with some tensors changed. */
export function changed(changes: Record<string, Weights>, from: Model = base): Model {
  return Object.fromEntries(
    Object.entries(from).map(([name, w]) => [name, changes[name] ? plus(w, changes[name]) : w]),
  );
}

export const everything: Record<string, Weights> = {
  [EMBEDDING]: random([40, 24], 0.01, 11),
  [Q]: lowRankDelta([24, 24], 3, 0.01, 12),
  [K]: random([12, 24], 0.01, 13),
  [DOWN]: random([24, 32], 0.01, 14),
  [NORM]: random([24], 0.01, 15),
  [FINAL]: random([24], 0.01, 16),
};

export async function extract(
  one: Model | ModelFolder,
  two: Model | ModelFolder,
  options: Partial<ExtractOptions> & { config?: Record<string, unknown> } = {},
  refs: [string, string] = ['base', 'tuned'],
  more: ModelFolder[] = [],
): Promise<ExtractedLora> {
  const { config = CONFIG, ...rest } = options;
  const folder = (path: string, model: Model | ModelFolder) =>
    'files' in model ? (model as ModelFolder) : modelFolder(path, model as Model, config);
  const sides = await sidesOf([folder('base', one), folder('tuned', two), ...more], ...refs);
  return extractLora(
    {
      base: sides.base,
      tuned: sides.tuned,
      read: sides.read,
      engine: createCpuBackend(),
      rank: { kind: 'rank', rank: 64 },
      maxRank: 128,
      dtype: 'F32',
      seed: 0,
      ...rest,
      settings: { include: [], exclude: [], embeddings: 'save', vectors: 'save', ...rest.settings },
    },
    sides.notes,
  );
}

export const settings = (given: Partial<ExtractOptions['settings']>) => ({
  settings: { include: [], exclude: [], embeddings: 'save' as const, vectors: 'save' as const, ...given },
});
export const keys = ({ file }: ExtractedLora) =>
  file.entries.map(({ name, shape }) => `${name.replace('base_model.model.', '')} [${shape}]`).sort();
export const configOf = ({ config }: ExtractedLora) => JSON.parse(config) as Record<string, unknown>;
export const left = ({ report }: ExtractedLora) =>
  Object.fromEntries(report.left.map(({ name, why }) => [name, why]));
