/**
 * Perplexity of a real pretrained model, its fine-tunes, its adapters and their merges, against transformers' figures:
 * within 0.1 %. Merges are computed as they are read and never written.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { DEFAULT_PROTOCOL, evaluate } from '../../src/evaluate/perplexity';
import { openPlannedWeights } from '../../src/evaluate/planned-weights';
import { createTokenizer } from '../../src/foreign/tokenizer';
import { parseModelConfig } from '../../src/formats/model-config';
import { parseRecipe } from '../../src/formats/recipe-yaml';
import { openRunner } from '../../src/forward/runner';
import { openModel } from '../../src/inputs/opened-model';
import { methodById } from '../../src/merge/methods';
import { makePlan } from '../../src/merge/plan/recipe-plan';
import { resolveArchitecture } from '../../src/models/resolution';
import type { ModelFolder } from '../../src/sources/model-folder';
import { diskFolder } from '../disk-folder';
import { readText, real } from './reference';

interface Figures {
  ppl: number;
}
const expected = JSON.parse(readText(real, 'expected.json')) as {
  models: Record<string, Record<string, Figures>>;
  merges: Record<string, { perplexity?: Record<string, Figures> }>;
  lora: Record<string, { perplexity?: Record<string, Figures> }>;
};

const FOLDERS: Record<string, string> = {
  base: 'f32/base',
  shakespeare: 'f32/shakespeare',
  wiki: 'f32/wiki',
  base16: 'base',
  'shakespeare-lora': 'shakespeare-lora',
  'wiki-rslora-dora': 'wiki-rslora-dora',
  'wiki-lora-head-embed': 'wiki-lora-head-embed',
};

function ids(text: string): Uint16Array {
  const bytes = readFileSync(join(real, `eval/${text}.ids.u16`));
  return new Uint16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

/** Perplexity of what a recipe describes; `exact` as for a single model. */
async function perplexity(recipeText: string, text: string, exact: boolean): Promise<number> {
  const opened = new Map<string, ModelFolder>();
  const open = async (name: string) => {
    const folder = await diskFolder(name, join(real, FOLDERS[name]!));
    opened.set(name, folder);
    return openModel(folder, name);
  };
  const plan = await makePlan(parseRecipe(recipeText).recipe!, open, methodById);
  expect(plan.problems.filter((p) => p.severity === 'error')).toEqual([]);
  const config = plan.extras.find((e) => e.path === 'config.json')!.content;
  const configText = 'text' in config ? config.text : readText(real, FOLDERS[config.folder]!, config.file);
  const engine = createCpuBackend();
  const weights = await openPlannedWeights(
    plan,
    [engine],
    (ref, begin, end) =>
      opened
        .get(ref.folder)!
        .files.find((f) => f.path === ref.file)!
        .open()
        .read(ref.begin + begin, ref.begin + end),
    exact,
  );
  const runner = openRunner(
    engine,
    resolveArchitecture(parseModelConfig(configText, 'config.json')),
    weights,
  );
  const report = await evaluate(runner, { ids: ids(text), bos: 1 }, DEFAULT_PROTOCOL);
  runner.close();
  weights.close();
  return report.perplexity;
}

const model = (ref: string) => `merge_method: passthrough\nmodels:\n  - model: ${ref}\n`;

/** |ours / theirs − 1| */
async function expectWithin(ours: Promise<number>, theirs: number | undefined): Promise<void> {
  expect(theirs).toBeGreaterThan(1);
  expect(Math.abs((await ours) / theirs! - 1)).toBeLessThan(1e-3);
}

const TEXT = 'tinystories';

/**
 * The ids of the reference as transformers 5 has them: they were made by tokenizers alone, which puts a mark in front of every
 * section, the text behind `<unk>` is one, and LlamaTokenizer puts none in front of a section that begins with a space.
 */
function asTransformers(theirs: readonly number[], text: string): number[] {
  const [bos, unk, mark] = [1, 0, 410];
  const sections = text.split('<unk>');
  let section = 0;
  return theirs.filter((id, i) => {
    const before = theirs[i - 1];
    if (before !== bos && before !== unk) return true;
    return !(sections[section++]!.startsWith(' ') && id === mark);
  });
}

describe('tokens', () => {
  it('are those of the reference, for every text', () => {
    const tokenizer = createTokenizer(
      {
        tokenizer: readText(real, 'base/tokenizer.json'),
        config: readText(real, 'base/tokenizer_config.json'),
        hasSentencePiece: false,
      },
      'base',
    );
    for (const text of ['tinystories', 'shakespeare_heldout', 'wikitext_test_60k']) {
      const whole = readText(real, `eval/${text}.txt`);
      expect([...tokenizer.prefix, ...tokenizer.encode(whole)]).toEqual(
        asTransformers([...ids(text)], whole),
      );
    }
  });
});

describe('models', () => {
  it.each([
    ['base', 'base (float32 weights)'],
    ['base16', 'base (bfloat16 weights)'],
    ['shakespeare', 'shakespeare (float32 weights)'],
    ['wiki', 'wiki (float32 weights)'],
  ])('%s', async (name, key) => {
    await expectWithin(perplexity(model(name), TEXT, true), expected.models[key]?.[TEXT]?.ppl);
  });

  it('base on a whole held-out text of 70 022 tokens', async () => {
    const theirs = expected.models['base (float32 weights)']!.shakespeare_heldout!.ppl;
    await expectWithin(perplexity(model('base'), 'shakespeare_heldout', true), theirs);
  }, 1_200_000);
});

describe('adapters', () => {
  it.each(['shakespeare-lora', 'wiki-rslora-dora', 'wiki-lora-head-embed'])('base+%s', async (name) => {
    await expectWithin(
      perplexity(model(`base+${name}`), TEXT, true),
      expected.lora[name]!.perplexity?.[TEXT]?.ppl,
    );
  });
});

describe('merges that are never written', () => {
  const names = Object.keys(expected.merges).filter(
    (name) =>
      !name.includes('bf16') &&
      // the incumbent drops whole small tensors here
      name !== 'breadcrumbs_ties_gamma001' &&
      methodById.has(/merge_method: (\w+)/.exec(readText(real, `golden/merge/${name}.yml`))![1]!),
  );
  it.each(names)('%s', async (name) => {
    const text = readText(real, `golden/merge/${name}.yml`);
    await expectWithin(perplexity(text, TEXT, false), expected.merges[name]!.perplexity?.[TEXT]?.ppl);
  });
});
