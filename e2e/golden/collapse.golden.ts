/**
 * Collapsing a real pretrained model: block influence, angular distances, RDSC tensors, similarities and perplexities
 * against figures computed in float64.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_PROTOCOL, evaluate } from '../../src/evaluate/perplexity';
import { mean } from '../../src/linalg/numbers';
import { defaultsOf } from '../../src/reports/option';
import { cutTexts } from '../../src/tools/collapse/calibration';
import { measureLayers, runReference, similarityTo } from '../../src/tools/collapse/measures';
import { type CollapseVariant, collapseOptions } from '../../src/tools/collapse/options';
import { findStack } from '../../src/tools/collapse/search';
import { collapseAt, type Stack, wholeStack } from '../../src/tools/collapse/stack';
import { type DepthInNode, depthInNode } from '../collapse-in-node';
import { largestDifference, readTensors } from '../merge-in-node';
import { readFile, readIds, readText, real } from './reference';

interface Mode {
  kept_layers: number[];
  perplexity: { ppl: number; nll_sum: number };
  laco_similarity_per_window: number[];
  laco_similarity_mean: number;
  merged_layer_norms?: Record<string, number>;
}
const golden = JSON.parse(readText(real, 'golden/collapse/collapse.json')) as {
  block_influence: { values: number[] };
  angular_distance: Record<'last_token_mean_over_full_windows', Record<string, number[]>>;
  collapse: { modes: Record<string, Mode> };
};
const ids = readIds(real, 'eval/tinystories.ids.u16');
const sequences = cutTexts([ids], 256);
const apart = (ours: number, theirs: number) => Math.abs(ours / theirs - 1);

const MODES: [string, CollapseVariant][] = [
  ['rdsc_linear', 'rdsc'],
  ['drop', 'drop'],
];

let depth: DepthInNode;
beforeAll(async () => {
  depth = await depthInNode(real, 'f32/base');
});

async function perplexity(stack: Stack): Promise<number> {
  const { runner, close } = await depth.open(stack);
  try {
    return (await evaluate(runner, { ids, bos: 1 }, DEFAULT_PROTOCOL)).perplexity;
  } finally {
    close();
  }
}

describe('what the original looks like', () => {
  it('block influence and angular distances', async () => {
    const { runner, close } = await depth.open(wholeStack(5));
    const { influence, distance } = await measureLayers(runner, sequences, 256);
    close();
    expect(influence).toHaveLength(5);
    for (const [i, value] of golden.block_influence.values.entries()) {
      expect(apart(influence[i]!, value), `influence of layer ${i}`).toBeLessThan(1e-5);
    }
    const wanted = golden.angular_distance.last_token_mean_over_full_windows;
    expect(distance).toHaveLength(6);
    for (const n of ['1', '2', '3']) {
      for (const [l, value] of wanted[n]!.entries()) {
        expect(apart(distance[l]![l + Number(n)]!, value), `d(${l}, ${n})`).toBeLessThan(1e-5);
        expect(distance[l + Number(n)]![l]).toBe(distance[l]![l + Number(n)]);
      }
    }
    for (const i of distance.keys()) expect(distance[i]![i]).toBe(0);
  });
});

describe.each(MODES)('%s', (name, variant) => {
  const mode = golden.collapse.modes[name]!;
  const stack = collapseAt(wholeStack(5), 1, 2, variant);

  it('keeps those layers, with those norms', async () => {
    expect(stack.map(({ origin }) => origin)).toEqual(mode.kept_layers);
    const folder = await depth.write(stack, 'collapsed');
    const file = folder.files.find(({ path }) => path === 'model.safetensors')!;
    const tensors = readTensors(await file.open().read(0, file.byteLength), file.path);
    for (const [rest, norm] of Object.entries(mode.merged_layer_norms ?? {})) {
      const { values } = tensors.get(`model.layers.1.${rest}`)!;
      const ours = Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
      expect(apart(ours, norm), rest).toBeLessThan(1e-6);
    }
    if (name !== 'rdsc_linear') return;
    const wanted = readFile(real, 'golden/collapse/rdsc_l1_m2_layer1.safetensors');
    expect(wanted.size).toBe(9);
    // there the norms are summed up, too
    const linears = [...wanted].filter(([key]) => !/norm/.test(key));
    expect(linears).toHaveLength(7);
    for (const [key, { values }] of linears) {
      expect(largestDifference(tensors.get(key)!.values, values).relative, key).toBeLessThan(1e-6);
    }
  });

  it('is as similar to the original', async () => {
    const original = await depth.open(wholeStack(5));
    const reference = await runReference(original.runner, sequences, { lowest: 1, highest: 2 });
    original.close();
    const { runner, close } = await depth.open(stack);
    const similarity = await similarityTo(reference, runner, 1);
    close();
    expect(similarity).toHaveLength(8);
    for (const [i, value] of mode.laco_similarity_per_window.entries()) {
      expect(Math.abs(similarity![i]! - value), `window ${i}`).toBeLessThan(1e-5);
    }
    expect(Math.abs(mean(similarity!) - mode.laco_similarity_mean)).toBeLessThan(1e-5);
  });

  it('has that perplexity', async () => {
    expect(apart(await perplexity(stack), mode.perplexity.ppl)).toBeLessThan(1e-3);
  });
});

describe('a collapsed model', () => {
  it('is as similar saved and opened again as it was when it was searched for, to the bit', async () => {
    for (const folder of ['f32/base', 'base']) {
      const whole = await depthInNode(real, folder);
      const { stack, similarity, steps } = await findStack(
        { ...defaultsOf(collapseOptions), block: 2, interval: 1, similarity: 0.3 },
        { layers: 5, open: whole.open, sequences, window: 256 },
      );
      expect(steps.some(({ accepted }) => accepted)).toBe(true);
      const saved = await whole.write(stack, 'saved');
      const again = await depthInNode(real, 'saved', {}, undefined, { saved });
      expect(again.model.architecture.blocks).toHaveLength(stack.length);
      const original = await whole.open(wholeStack(5));
      const reference = await runReference(original.runner, sequences, { lowest: 0, highest: 0 });
      const reopened = await again.open(wholeStack(stack.length));
      expect(await similarityTo(reference, reopened.runner, 0)).toEqual(similarity.sequences);
      original.close();
      reopened.close();
    }
  });
});
