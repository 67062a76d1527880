/**
 * The methods of the recommended merge on real pairs, calibrated on text the models wrote themselves: λ searched for on such
 * text, and λ tuned on the first 8 500 ids of held-out text; perplexity on the ids behind them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { fakeStorage } from '../../src/store/opfs.test.fake';
import { calibrateInNode, type NodeMerge, type NodeModels } from '../calibrate-in-node';
import { real } from './reference';

const WINDOWS = { window: 256, stride: 255 };
const VALIDATION = 8500;
const TEST = 8500;
const LAMBDAS = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.7];

const folders: NodeModels['folders'] = {
  base: 'f32/base',
  shakespeare: 'f32/shakespeare',
  wiki: 'f32/wiki',
  'shakespeare-lora': 'shakespeare-lora',
  'wiki-rslora-dora': 'wiki-rslora-dora',
};
const models: NodeModels = { root: real, folders };
const SETS = [
  { name: 'pair F', contributors: ['shakespeare', 'wiki'] },
  { name: 'pair L', contributors: ['base+shakespeare-lora', 'base+wiki-rslora-dora'] },
];
const METHODS = [
  { name: 'task arithmetic', method: 'task_arithmetic', parameters: '' },
  { name: 'Gram merge of the changes', method: 'gram', parameters: 'match: changes, ' },
  { name: 'Gram merge', method: 'gram', parameters: '' },
  { name: 'Gram merge, outputs matched', method: 'gram', parameters: 'match: outputs, ' },
];

function idsOf(text: string): number[] {
  const bytes = readFileSync(join(real, `eval/${text}.ids.u16`));
  return [...new Uint16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))];
}
const texts = ['shakespeare_heldout', 'wikitext_test_60k'].map(idsOf);

async function geometricMean(merge: NodeMerge, lambda: number, begin: number, end: number): Promise<number> {
  let sum = 0;
  for (const ids of texts) {
    sum += Math.log(await merge.perplexityAt(lambda, ids.slice(begin, end), WINDOWS));
  }
  return Math.exp(sum / texts.length);
}

/** The λ of the list with the least perplexity, the list having one valley. */
async function tuned(merge: NodeMerge, from: number): Promise<number> {
  const known = new Map<number, number>();
  const at = async (i: number) => {
    if (i < 0 || i >= LAMBDAS.length) return Number.POSITIVE_INFINITY;
    const value = known.get(i) ?? (await geometricMean(merge, LAMBDAS[i]!, 0, VALIDATION));
    known.set(i, value);
    return value;
  };
  let best = LAMBDAS.findLastIndex((lambda) => lambda <= Math.max(from, LAMBDAS[0]!));
  for (let moved = true; moved; ) {
    moved = false;
    for (const next of [best - 1, best + 1]) {
      if ((await at(next)) >= (await at(best))) continue;
      best = next;
      moved = true;
    }
  }
  return LAMBDAS[best]!;
}

describe.each(SETS)('$name', ({ name, contributors }) => {
  const found: { own: number; searched: number; tuned: number }[] = [];

  beforeEach(() => {
    if (found.length === 0) vi.stubGlobal('navigator', fakeStorage().navigator);
  });

  it.each(METHODS)(
    '$name',
    async ({ name: title, method, parameters }) => {
      const weight = method === 'gram' ? '' : ', parameters: {weight: 1}';
      const list = contributors.map((model) => `  - {model: ${model}${weight}}\n`).join('');
      const text = `merge_method: ${method}\nbase_model: base\nmodels:\n${list}parameters: {${parameters}lambda: auto}\n`;
      const merge = await calibrateInNode(text, models);
      const { chosen, curve } = merge.report.lambda!;
      const own = curve.find(({ lambda }) => lambda === chosen)!.perplexity;
      const best = await tuned(merge, chosen);
      const of = (lambda: number) => geometricMean(merge, lambda, VALIDATION, VALIDATION + TEST);
      const searched = await of(chosen);
      const row = { own, searched, tuned: best === chosen ? searched : await of(best) };
      found.push(row);
      console.log(
        `${name}, ${title}: λ ${chosen}, own text ${own.toFixed(3)}, test ${searched.toFixed(2)}; tuned λ ${best}, test ${row.tuned.toFixed(2)}`,
      );
    },
    3_600_000,
  );

  it('each is better than the one before, and what own text prefers is the best', () => {
    expect(found.length).toBe(METHODS.length);
    const arithmetic = found[0]!;
    const [gram, matched] = found.slice(2) as [(typeof found)[0], (typeof found)[0]];
    expect(gram.tuned).toBeLessThan(arithmetic.tuned);
    expect(matched.tuned).toBeLessThan(gram.tuned);
    const preferred = found.reduce((a, b) => (b.own < a.own ? b : a));
    expect(preferred.searched).toBeLessThan(1.01 * Math.min(...found.map(({ searched }) => searched)));
  });
});
