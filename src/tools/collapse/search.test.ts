import { describe, expect, it } from 'vitest';
import { depthInNode } from '../../../e2e/collapse-in-node';
import { GOLDEN_FOLDER } from '../../forward/golden.test.fixture';
import { defaultsOf } from '../../reports/option';
import { runReference, similarityTo } from './measures';
import { type CollapseSettings, collapseOptions } from './options';
import type { CollapseStep } from './report';
import { findStack, measureModel, type SearchOptions } from './search';
import { collapseAt, removedLayers, wholeStack } from './stack';

const settings = (changes: Partial<CollapseSettings>): CollapseSettings => ({
  ...defaultsOf(collapseOptions),
  ...changes,
});
const sequences = [{ ids: Array.from({ length: 20 }, (_, i) => (i * 37 + 11) % 90) }];

async function optionsOf(name: string): Promise<SearchOptions & { passes: string[]; steps: CollapseStep[] }> {
  const depth = await depthInNode(GOLDEN_FOLDER, name);
  const passes: string[] = [];
  const steps: CollapseStep[] = [];
  return {
    layers: depth.model.architecture.blocks.length,
    open: depth.open,
    sequences,
    window: 20,
    passes,
    steps,
    onPhase: (phase, count) => passes.push(`${phase} ${count}`),
    onCandidate: (step) => steps.push(step),
  };
}

describe('findStack', () => {
  it('by influence removes the layer of least influence, and measures what is left', async () => {
    const options = await optionsOf('gemma3');
    const found = await findStack(settings({ planner: 'influence', remove: 1 }), options);
    const { influence } = found.measure!;
    expect(removedLayers(found.stack, 3)).toEqual([influence.indexOf(Math.min(...influence))]);
    expect(found.similarity.sequences).toHaveLength(1);
    expect(options.passes).toEqual(['measuring 4', expect.stringMatching(/^searching/)]);
    // a merging variant keeps layer 0, which has no layer before it
    const merged = await findStack(settings({ planner: 'influence', remove: 2, variant: 'rdsc' }), options);
    expect(removedLayers(merged.stack, 3)).toEqual([1, 2]);
  });

  it('by angular distance removes a block that layer 0 is not in', async () => {
    const chosen = settings({ planner: 'angular', ratio: 0.34 });
    const found = await findStack(chosen, await optionsOf('gemma2'));
    const { distance } = found.measure!;
    const best = distance[1]![2]! < distance[2]![3]! ? 1 : 2;
    expect(removedLayers(found.stack, 3)).toEqual([best]);
  });

  it('greedily, step by step, and says so when nothing is similar enough', async () => {
    const options = await optionsOf('smollm3');
    const found = await findStack(settings({ block: 2, interval: 1, similarity: -1 }), options);
    expect(found.stack).toHaveLength(2);
    expect(found.steps).toEqual(options.steps);
    expect(found.similarity.mean).toBe(found.steps.at(-1)!.similarity);
    const strict = findStack(settings({ block: 2, interval: 1, similarity: 0.999999 }), options);
    await expect(strict).rejects.toMatchObject({
      code: 'NothingToCollapse',
      message: expect.stringMatching(/the most similar of 1 candidate reaches/),
    });
    await expect(
      findStack(settings({ planner: 'influence', threshold: 1e-9 }), options),
    ).rejects.toMatchObject({ code: 'NothingToCollapse' });
  });

  it('stops when it is canceled', async () => {
    const controller = new AbortController();
    const options = { ...(await optionsOf('llama')), signal: controller.signal };
    controller.abort();
    await expect(findStack(settings({ planner: 'influence', remove: 1 }), options)).rejects.toMatchObject({
      code: 'Canceled',
    });
  });
});

describe('measureModel', () => {
  it('gives the similarity of every place of a block', async () => {
    const options = await optionsOf('gemma3');
    const { measure, curve } = await measureModel({ block: 2, variant: 'rdsc' }, options);
    expect(measure.influence).toHaveLength(3);
    expect(curve!.map(({ layer }) => layer)).toEqual([0, 1]);
    const original = await options.open(wholeStack(3));
    const reference = await runReference(original.runner, sequences, { lowest: 0, highest: 1 });
    original.close();
    for (const { layer, similarity } of curve!) {
      const { runner, close } = await options.open(collapseAt(wholeStack(3), layer, 1, 'rdsc'));
      expect([similarity]).toEqual(await similarityTo(reference, runner, layer));
      close();
    }
    expect((await measureModel(undefined, options)).curve).toBeUndefined();
    await expect(measureModel({ block: 4, variant: 'rdsc' }, options)).rejects.toMatchObject({
      code: 'Usage',
    });
  });
});
