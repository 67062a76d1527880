/** Three pairs of real tokenizers on a trained model: bits per byte before and after. */
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { memoryFolder } from '../../src/inputs/memory-models.test.support';
import type { ModelFolder } from '../../src/sources/model-folder';
import { fakeStorage } from '../../src/store/opfs.test.fake';
import type { TransplantForm } from '../../src/tools/transplant/options';
import { folderOf, transplantIn } from '../../src/tools/transplant/transplant.test.support';
import { diskFolder } from '../disk-folder';
import { readText, reference } from './reference';

const data = join(reference, 'data');
const text = readText(data, 'stories15m/texts/stories.eval.txt');
const tokenizer = (name: string) => readText(data, 'tokenizers', name, 'tokenizer.json');
beforeEach(() => vi.stubGlobal('navigator', { ...fakeStorage().navigator, hardwareConcurrency: 1 }));

/** A model of random rows with a real tokenizer: its weights are not looked at by subwords. */
function donorOf(name: string, rows: number, eos: number): ModelFolder {
  const tokens = Array.from({ length: rows }, (_, i) => `#${i}`);
  const files = { 'tokenizer.json': tokenizer(name) };
  return folderOf(name, {
    tokens,
    width: 4,
    spelling: 'bytes',
    config: { eos_token_id: eos },
    files,
    seed: 1,
  });
}

const base = () => diskFolder('stories15m', join(data, 'stories15m/base'));

async function told(pair: string, model: ModelFolder, donor: ModelFolder, form: Partial<TransplantForm>) {
  const outcome = await transplantIn({ model, donor }, form, { texts: [text] });
  const { before, after } = outcome.report.quality!;
  const { shared, new: fresh } = outcome.report.tokens;
  const words = ({ bitsPerByte, margin }: typeof before) =>
    `${bitsPerByte.toFixed(4)} ± ${margin!.toFixed(4)}`;
  console.log(
    `${pair}, ${form.way}: ${shared} shared, ${fresh} new; ${words(before)} → ${words(after)} bits per byte`,
  );
  const folder = memoryFolder(`${pair}-${form.way}`, Object.fromEntries(outcome.files));
  return { ...outcome, before: before.bitsPerByte, after: after.bitsPerByte, folder };
}

describe('bits per byte', () => {
  it.each([
    ['gpt2', 50_257, 50_256],
    ['gpt-neox', 50_278, 0],
  ])('tinyllama → %s: pieces of the text are better than the mean', async (name, rows, eos) => {
    const donor = donorOf(name, rows, eos);
    const model = await base();
    const pieces = await told(`tinyllama → ${name}`, model, donor, { way: 'subwords' });
    const mean = await told(`tinyllama → ${name}`, model, donor, { way: 'mean' });
    expect(pieces.report.tokens.shared).toBeGreaterThan(17_000);
    expect(pieces.before).toBe(mean.before);
    expect(pieces.after).toBeLessThan(0.8 * mean.after);
    expect(pieces.after).toBeLessThan(1.5 * pieces.before);
  });

  it('gpt2 → tinyllama: matching pursuit by the model that had it first brings most back', async () => {
    const first = await base();
    const { folder, before } = await told('tinyllama → gpt2', first, donorOf('gpt2', 50_257, 50_256), {
      way: 'subwords',
    });
    const back = await told('gpt2 → tinyllama', folder, first, { way: 'omp', k: 16, landmarks: 1024 });
    const near = await told('gpt2 → tinyllama', folder, first, { way: 'neighbors', landmarks: 1024 });
    expect(back.after).toBeLessThan(back.before);
    expect(back.after).toBeLessThan(1.1 * before);
    expect(near.after).toBeLessThan(back.before);
  }, 600_000);
});
