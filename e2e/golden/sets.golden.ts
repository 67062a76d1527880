/**
 * The methods of the recommended merge on real pairs, calibrated on text the models wrote themselves: λ searched for on such
 * text, and λ tuned on the first 8 500 ids of held-out text; perplexity on the ids behind them.
 */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { EvaluateProtocol } from '../../src/evaluate/perplexity';
import { fakeStorage } from '../../src/store/opfs.test.fake';
import { calibrateInNode, type NodeMerge } from '../calibrate-in-node';
import { modelSets } from '../model-sets';
import { reference } from './reference';

const LAMBDAS = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.7];

const SETS = modelSets(reference).filter(({ name }) => name.startsWith('pair'));
const METHODS = [
  { name: 'task arithmetic', method: 'task_arithmetic', parameters: '' },
  { name: 'Gram merge of the changes', method: 'gram', parameters: 'match: changes, ' },
  { name: 'Gram merge', method: 'gram', parameters: '' },
  { name: 'Gram merge, outputs matched', method: 'gram', parameters: 'match: outputs, ' },
  { name: 'Gram merge, stream matched', method: 'gram', parameters: 'match: stream, ' },
];

async function geometricMean(
  merge: NodeMerge,
  lambda: number,
  texts: readonly number[][],
  protocol: EvaluateProtocol,
): Promise<number> {
  let sum = 0;
  for (const ids of texts) sum += Math.log(await merge.perplexityAt(lambda, ids, protocol));
  return Math.exp(sum / texts.length);
}

/** The λ of the list with the least perplexity, the list having one valley. */
async function tuned(from: number, measure: (lambda: number) => Promise<number>): Promise<number> {
  const known = new Map<number, number>();
  const at = async (i: number) => {
    if (i < 0 || i >= LAMBDAS.length) return Number.POSITIVE_INFINITY;
    const value = known.get(i) ?? (await measure(LAMBDAS[i]!));
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

describe.each(SETS)('$name', ({ name, contributors, models, protocol, texts }) => {
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
      const held = texts();
      const over = (which: 'validation' | 'test') => (lambda: number) =>
        geometricMean(
          merge,
          lambda,
          held.map((text) => text[which]),
          protocol,
        );
      const best = await tuned(chosen, over('validation'));
      const of = over('test');
      const searched = await of(chosen);
      const row = { own, searched, tuned: best === chosen ? searched : await of(best) };
      found.push(row);
      console.log(
        `${name}, ${title}: λ ${chosen}, own text ${own.toFixed(3)}, test ${searched.toFixed(2)}; tuned λ ${best}, test ${row.tuned.toFixed(2)}`,
      );
    },
    3_600_000,
  );

  it('what is matched is better than what is not, and what own text prefers is the best', () => {
    expect(found.length).toBe(METHODS.length);
    const [arithmetic, , gram, outputs, stream] = found.map((row) => row.tuned);
    expect(gram).toBeLessThan(arithmetic!);
    expect(outputs).toBeLessThan(gram!);
    // on pair F the stream is as good, on pair L better
    expect(stream).toBeLessThan(1.005 * outputs!);
    const preferred = found.reduce((a, b) => (b.own < a.own ? b : a));
    expect(preferred.searched).toBeLessThan(1.01 * Math.min(...found.map(({ searched }) => searched)));
  });
});
