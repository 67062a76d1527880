/** Every family that runs: collapsed, written, opened again. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type DepthInNode, depthInNode } from '../../../e2e/collapse-in-node';
import { readTensors } from '../../../e2e/merge-in-node';
import { GOLDEN_FOLDER, GOLDEN_NAMES } from '../../forward/golden.test.fixture';
import { TIGHT } from '../../forward/runner.test.cases';
import { splitLayer } from '../../models/tensor-role';
import { defaultsOf } from '../../reports/option';
import type { ModelFolder } from '../../sources/model-folder';
import { runReference, similarityTo } from './measures';
import { collapseOptions } from './options';
import { findStack } from './search';
import { collapseAt, removedLayers, type Stack, wholeStack } from './stack';

const IDS = Array.from({ length: 24 }, (_, i) => (i * 37 + 11) % 90);
const sequences = [{ ids: IDS.slice(0, 17) }, { ids: IDS.slice(17) }];

async function tensorsOf(folder: ModelFolder) {
  const file = folder.files.find(({ path }) => path === 'model.safetensors')!;
  return readTensors(await file.open().read(0, file.byteLength), file.path);
}
const configOf = async (folder: ModelFolder) => {
  const file = folder.files.find(({ path }) => path === 'config.json')!;
  return JSON.parse(new TextDecoder().decode(await file.open().read(0, file.byteLength))) as Record<
    string,
    unknown
  >;
};
/** Similarity of the written and reopened stack to the original, run from its embedding on. */
async function reopened(depth: DepthInNode, stack: Stack, options = {}): Promise<number[] | null> {
  const saved = await depth.write(stack, 'saved');
  const again = await depthInNode('', 'saved', options, undefined, { saved });
  const original = await depth.open(wholeStack(depth.model.architecture.blocks.length));
  const reference = await runReference(original.runner, sequences, { lowest: 0, highest: 0 });
  const whole = await again.open(wholeStack(stack.length));
  const found = await similarityTo(
    { groups: reference.groups.map((g) => ({ ...g, entries: new Map() })) },
    whole.runner,
    0,
  );
  original.close();
  whole.close();
  return found;
}

describe('every family', () => {
  const names = GOLDEN_NAMES.filter((name) => name !== 'gpt2_inv_layer');
  it.each(names)('%s: renumbered, counted, and as similar as the search said', async (name) => {
    const depth = await depthInNode(GOLDEN_FOLDER, name);
    const layers = depth.model.architecture.blocks.length;
    const settings = {
      ...defaultsOf(collapseOptions),
      planner: 'angular',
      remove: 1,
      variant: 'rdsc',
    } as const;
    const { stack, similarity } = await findStack(settings, {
      layers,
      open: depth.open,
      sequences,
      window: 17,
    });
    expect(await reopened(depth, stack)).toEqual(similarity.sequences);
    expect(similarity.mean).toBeLessThan(0.999999);
    expect(similarity.mean).toBeGreaterThan(-1);

    const saved = await depth.write(stack, 'saved');
    const tensors = await tensorsOf(saved);
    const original = new Map(depth.model.plan.tensors.map((tensor) => [tensor.name, tensor]));
    const indices = [...tensors.keys()].map((key) => splitLayer(key)?.index).filter((i) => i !== undefined);
    expect(new Set(indices)).toEqual(new Set(Array.from({ length: layers - 1 }, (_, i) => i)));
    // the same tensors as before but for one layer's
    const perLayer = [...original.keys()].filter(
      (key) => splitLayer(key)?.index === removedLayers(stack, layers)[0],
    );
    expect(tensors.size).toBe(original.size - perLayer.length);
    const config = await configOf(saved);
    const counts = ['num_hidden_layers', 'n_layer'].map((key) => config[key]).filter((n) => n !== undefined);
    expect(counts.length).toBeGreaterThan(0);
    expect(new Set(counts)).toEqual(new Set([layers - 1]));
  });
});

describe('the values of the merged layer', () => {
  it.each([
    ['llama', 'mlp.up_proj.weight', 'input_layernorm.weight'],
    ['gpt2', 'mlp.c_fc.bias', 'ln_1.weight'],
    ['gemma3', 'self_attn.q_proj.weight', 'self_attn.q_norm.weight'],
  ])('%s: the differences of linear layers, norms of the first', async (name, linear, norm) => {
    const depth = await depthInNode(GOLDEN_FOLDER, name);
    const layers = depth.model.architecture.blocks.length;
    const before = readTensors(
      new Uint8Array(readFileSync(`${GOLDEN_FOLDER}/${name}/model.safetensors`)),
      name,
    );
    const find = (index: number, rest: string) =>
      [...before].find(([key]) => splitLayer(key)?.index === index && splitLayer(key)!.rest === rest)![1]
        .values;
    const stack = collapseAt(wholeStack(layers), 0, 1, 'rdsc');
    const after = await tensorsOf(await depth.write(stack, 'saved'));
    const [key] = [...after.keys()].filter(
      (k) => splitLayer(k)?.index === 0 && splitLayer(k)!.rest === linear,
    );
    for (const [i, value] of after.get(key!)!.values.entries()) {
      // θ0 + (θ1 − θ0)
      expect(value).toBeCloseTo(find(1, linear)[i]!, 6);
    }
    const normKey = [...after.keys()].find(
      (k) => splitLayer(k)?.index === 0 && splitLayer(k)!.rest === norm,
    )!;
    expect(after.get(normKey)!.values).toEqual(find(0, norm));
  });
});

describe('prefix reuse', () => {
  it('changes no bit, however little of the model stays on the device', async () => {
    for (const options of [{}, TIGHT]) {
      const depth = await depthInNode(GOLDEN_FOLDER, 'gemma2', options);
      const stack = collapseAt(wholeStack(3), 1, 1, 'rdsc');
      const original = await depth.open(wholeStack(3));
      const reference = await runReference(original.runner, sequences, { lowest: 0, highest: 1 });
      const { runner, close } = await depth.open(stack);
      expect(reference.groups[0]!.entries.size).toBe(2);
      const reused = await similarityTo(reference, runner, 1);
      const fromTheStart = { groups: reference.groups.map((g) => ({ ...g, entries: new Map() })) };
      expect(await similarityTo(fromTheStart, runner, 1)).toEqual(reused);
      original.close();
      close();
    }
  });

  it('the original itself has similarity 1', async () => {
    const depth = await depthInNode(GOLDEN_FOLDER, 'llama');
    const { runner, close } = await depth.open(wholeStack(2));
    const reference = await runReference(runner, sequences, { lowest: 0, highest: 0 });
    expect(await similarityTo(reference, runner, 2)).toEqual([1, 1]);
    close();
  });
});

describe('what is refused', () => {
  it('a layer that cannot move', async () => {
    const depth = await depthInNode(GOLDEN_FOLDER, 'gpt2_inv_layer');
    const { open } = depth;
    const options = { layers: 3, open, sequences, window: 17 };
    await expect(
      findStack({ ...defaultsOf(collapseOptions), planner: 'angular', remove: 1 }, options),
    ).rejects.toMatchObject({
      code: 'ArchitectureUnsupported',
      message: expect.stringMatching(/layer [12]/),
    });
  });
});
