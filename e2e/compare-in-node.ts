import { join } from 'node:path';
import { createCpuBackend } from '../src/backend/cpu/cpu-backend';
import { openModel } from '../src/inputs/opened-model';
import type { ReadTensor } from '../src/inputs/stored-tensor';
import type { TensorRef } from '../src/inputs/tensor-view';
import type { ModelFolder } from '../src/sources/model-folder';
import {
  type Comparison,
  compareModels,
  openSides,
  type Sides,
} from '../src/tools/difference/compare-models';
import type { CompareOptions } from '../src/tools/difference/compare-tensors';
import { type ExtractedLora, extractLora } from '../src/tools/extract/extract-lora';
import type { ExtractOptions } from '../src/tools/extract/lora-modules';
import { diskFolder } from './disk-folder';

/** Two models on this machine's disk, and how to read them: what the studio's worker does, in Node. */
export async function sidesInNode(
  root: string,
  base: string,
  finetuned: string,
): Promise<Sides & { read: ReadTensor }> {
  const folders = new Map<string, ModelFolder>();
  const sides = await openSides(base, finetuned, async (path) => {
    const folder = folders.get(path) ?? (await diskFolder(path, join(root, path)));
    folders.set(path, folder);
    return openModel(folder, path);
  });
  const read = (ref: TensorRef, begin: number, end: number) =>
    folders
      .get(ref.folder)!
      .files.find((file) => file.path === ref.file)!
      .open()
      .read(ref.begin + begin, ref.begin + end);
  return { ...sides, read };
}

export async function compareInNode(
  root: string,
  base: string,
  finetuned: string,
  options: Partial<CompareOptions> = {},
): Promise<Comparison> {
  const { base: one, tuned, notes, read } = await sidesInNode(root, base, finetuned);
  return compareModels(
    {
      base: one,
      tuned,
      engine: createCpuBackend(),
      read,
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
