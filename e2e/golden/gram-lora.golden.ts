/**
 * The Gram merge of two real LoRAs, of ranks 8 and 16, as a LoRA: the model it stands for, its rank, and its perplexity beside
 * that of the best sum of the two.
 */
import { describe, expect, it, vi } from 'vitest';
import { memoryFolder } from '../../src/inputs/memory-models.test.support';
import { singularValues } from '../../src/linalg/small-svd';
import type { ModelFolder } from '../../src/sources/model-folder';
import { fakeStorage } from '../../src/store/opfs.test.fake';
import { adapterFolder } from '../../src/tools/lora/checks';
import { products } from '../adapter-output-cases';
import { calibrateInNode, type NodeMerge, type NodeModels } from '../calibrate-in-node';
import { extractInNode } from '../compare-in-node';
import { largestDifference, mergeInNode, planInNode } from '../merge-in-node';
import { modelSets } from '../model-sets';
import { reference } from './reference';

const { models, protocol, texts } = modelSets(reference).find(({ name }) => name === 'pair L')!;
const held = texts();

/** The LoRA of wiki, cut from its fine-tune. */
async function wikiLora(): Promise<ModelFolder> {
  const { file, config } = await extractInNode(models.root, 'f32/base', 'f32/wiki', {
    rank: { kind: 'rank', rank: 16 },
    settings: { include: [], exclude: [], embeddings: 'skip', vectors: 'skip' },
  });
  return { ...adapterFolder(file, config), path: 'wiki-lora' };
}

async function geometricMean(merge: NodeMerge, lambda: number, which: 'validation' | 'test') {
  let sum = 0;
  for (const text of held) sum += Math.log(await merge.perplexityAt(lambda, text[which], protocol));
  return Math.exp(sum / held.length);
}

/** The λ with the least perplexity on what is tuned on, and the perplexity on what is measured. */
async function best(merge: NodeMerge, lambdas: readonly number[]) {
  const tried: [number, number][] = [];
  for (const lambda of lambdas) tried.push([lambda, await geometricMean(merge, lambda, 'validation')]);
  const [lambda] = tried.reduce((a, b) => (b[1] < a[1] ? b : a));
  return { lambda, perplexity: await geometricMean(merge, lambda, 'test') };
}

const recipe = (method: string, lambda: number, output = '') =>
  `merge_method: ${method}\nbase_model: base\nmodels:\n${['shakespeare-lora', 'wiki-lora']
    .map((name) => `  - {model: base+${name}${method === 'gram' ? '' : ', parameters: {weight: 1}'}}\n`)
    .join('')}parameters: {lambda: ${lambda}}\n${output}`;

describe('the Gram merge of LoRAs of ranks 8 and 16', () => {
  it('is a LoRA of rank 24 that is the merged model, and better than the best sum', async () => {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const folders = { ...models.folders, 'wiki-lora': await wikiLora() };
    const given: NodeModels = { ...models, folders };
    const sum = await best(
      await calibrateInNode(recipe('task_arithmetic', 1), given),
      [0.5, 0.6, 0.7, 0.8, 0.9, 1],
    );
    const gram = await calibrateInNode(recipe('gram', 1), given);
    const found = await best(gram, [0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4]);
    const at1 = await geometricMean(gram, 1, 'test');
    console.log(
      `task arithmetic λ ${sum.lambda}: ${sum.perplexity.toFixed(2)}; Gram merge λ ${found.lambda}: ${found.perplexity.toFixed(2)}, λ 1: ${at1.toFixed(2)}`,
    );
    expect(Math.abs(sum.perplexity / 33.43 - 1)).toBeLessThan(0.01);
    expect(Math.abs(found.perplexity / 30.3 - 1)).toBeLessThan(0.01);

    const output = recipe('gram', found.lambda, 'amalgam: {output: adapter}\n');
    const { prepared } = await calibrateInNode(output, given);
    const { plan } = await planInNode(output, models.root, folders);
    const made = await mergeInNode(output, models.root, folders, undefined, prepared);
    const { text } = plan.extras.find(({ path }) => path === 'adapter_config.json')!.content as {
      text: string;
    };
    for (const [module, delta] of products(made.tensors, JSON.parse(text))) {
      const [rank, inputs] = made.tensors.get(`base_model.model.${module}.lora_A.weight`)!.shape as [
        number,
        number,
      ];
      expect(rank, module).toBe(24);
      const values = singularValues({ rows: inputs, cols: delta.length / inputs, data: delta });
      expect((values[24] ?? 0) / values[0]!, module).toBeLessThan(1e-6);
    }

    const file = made.shards[0]! as Uint8Array<ArrayBuffer>;
    const lora = memoryFolder('merged', { 'adapter_config.json': text, 'adapter_model.safetensors': file });
    const alone = 'merge_method: passthrough\nmodels: [{model: base+merged}]\n';
    const onBase = await calibrateInNode(alone, { ...given, folders: { ...folders, merged: lora } });
    const merged = await calibrateInNode(recipe('gram', found.lambda), given);
    const { tensors } = await mergeInNode(alone, models.root, { ...folders, merged: lora });
    for (const [name, { values }] of tensors)
      expect(largestDifference(values, await merged.tensor(name)).relative, name).toBeLessThan(1e-5);
    let sumOfLogs = 0;
    for (const { test } of held) sumOfLogs += Math.log(await onBase.perplexity(test, protocol));
    const perplexity = Math.exp(sumOfLogs / held.length);
    expect(Math.abs(perplexity / found.perplexity - 1)).toBeLessThan(1e-4);
  }, 3_600_000);
});
