/** Perplexity of an adapter extracted from a real fine-tune, beside its base and the fine-tune. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { OpenModels } from '../../src/host/models';
import { openModel } from '../../src/inputs/opened-model';
import { findFile, type ModelFolder } from '../../src/sources/model-folder';
import { adapterPerplexity } from '../../src/tools/extract/job';
import { diskFolder } from '../disk-folder';
import { extractInNode } from '../extract-in-node';
import { readText, real } from './reference';

const { models: expected } = JSON.parse(readText(real, 'expected.json')) as {
  models: Record<string, Record<string, { ppl: number }>>;
};
const bytes = readFileSync(join(real, 'eval/tinystories.ids.u16'));
const ids = [...new Uint16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))];

/** Models on this machine's disk, in place of the worker's. */
function modelsOnDisk(): OpenModels {
  const folders = new Map<string, ModelFolder>();
  const models: Pick<OpenModels, 'open' | 'file'> = {
    async open(path) {
      const folder = folders.get(path) ?? (await diskFolder(path, join(real, path)));
      folders.set(path, folder);
      return openModel(folder, path);
    },
    file: (of, path) => ({ folder: folders.get(of)!, file: findFile(folders.get(of)!, path)! }),
  };
  // the job uses no other method of them
  return models as OpenModels;
}

describe('the perplexity of an extracted adapter', () => {
  it.each([
    ['of full rank is that of the fine-tune', 64, 1e-5],
    ['of rank 1 lies between base and fine-tune', 1, undefined],
  ])('%s', async (_, rank, limit) => {
    const { file, config } = await extractInNode(real, 'f32/base', 'f32/shakespeare', {
      rank: { kind: 'rank', rank },
    });
    const { base, adapted, finetuned } = await adapterPerplexity(file, config, {
      base: 'f32/base',
      finetuned: 'f32/shakespeare',
      input: { ids },
      engine: 'cpu',
      models: modelsOnDisk(),
      signal: new AbortController().signal,
      onProgress() {},
    });
    const wanted = (name: string) => expected[`${name} (float32 weights)`]!.tinystories!.ppl;
    expect(Math.abs(base.perplexity / wanted('base') - 1)).toBeLessThan(1e-3);
    expect(Math.abs(finetuned.perplexity / wanted('shakespeare') - 1)).toBeLessThan(1e-3);
    if (limit) expect(Math.abs(adapted.perplexity / finetuned.perplexity - 1)).toBeLessThan(limit);
    else {
      expect(adapted.perplexity).toBeGreaterThan(base.perplexity);
      expect(adapted.perplexity).toBeLessThan(finetuned.perplexity);
    }
  });
});
