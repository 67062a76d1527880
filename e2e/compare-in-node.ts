import { join } from 'node:path';
import { createCpuBackend } from '../src/backend/cpu/cpu-backend';
import { inputsOf } from '../src/host/threads.test.support';
import type { Inputs } from '../src/host/weight-inputs';
import { openModel } from '../src/inputs/opened-model';
import type { ReadTensor } from '../src/inputs/stored-tensor';
import type { ModelFolder } from '../src/sources/model-folder';
import {
  type Comparison,
  compareModels,
  openSides,
  type Sides,
} from '../src/tools/difference/compare-models';
import type { CompareOptions } from '../src/tools/difference/compare-tensors';
import { type ExtractedLora, extractLora } from '../src/tools/lora/extract-lora';
import type { ExtractOptions } from '../src/tools/lora/lora-modules';
import { diskFolder } from './disk-folder';

/** Two models on this machine's disk, and how to read them: what the studio's worker does, in Node. */
export async function sidesInNode(
  root: string,
  base: string,
  finetuned: string,
): Promise<Sides & { inputs: Inputs; read: ReadTensor }> {
  const folders = new Map<string, ModelFolder>();
  const sides = await openSides(base, finetuned, async (path) => {
    const folder = folders.get(path) ?? (await diskFolder(path, join(root, path)));
    folders.set(path, folder);
    return openModel(folder, path);
  });
  const inputs = inputsOf([...folders.values()]);
  return { ...sides, inputs, read: inputs.read };
}

export async function compareInNode(
  root: string,
  base: string,
  finetuned: string,
  options: Partial<CompareOptions> = {},
): Promise<Comparison> {
  const { base: one, tuned, notes, inputs } = await sidesInNode(root, base, finetuned);
  return compareModels(
    {
      base: one,
      tuned,
      engine: createCpuBackend(),
      inputs,
      threshold: 1e-6,
      loraAnalysis: true,
      seed: 0,
      ...options,
    },
    notes,
  );
}

/** Extracts an adapter from two models on this machine's disk: what the studio's worker does, in Node. */
export async function extractInNode(
  root: string,
  base: string,
  finetuned: string,
  options: Partial<ExtractOptions> & Pick<ExtractOptions, 'rank'>,
): Promise<ExtractedLora> {
  const { base: one, tuned, notes, read } = await sidesInNode(root, base, finetuned);
  return extractLora(
    {
      base: one,
      tuned,
      engine: createCpuBackend(),
      read,
      maxRank: 128,
      settings: { include: [], exclude: [], embeddings: 'save', vectors: 'save' },
      dtype: 'F32',
      seed: 0,
      ...options,
    },
    notes,
  );
}
