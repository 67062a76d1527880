import { createCpuBackend } from '../src/backend/cpu/cpu-backend';
import { type ExtractedLora, extractLora } from '../src/tools/extract/extract-lora';
import type { ExtractOptions } from '../src/tools/extract/lora-modules';
import { sidesInNode } from './compare-in-node';

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
