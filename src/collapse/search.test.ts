import { describe, expect, it } from 'vitest';
import { depthInNode } from '../../e2e/collapse-in-node';
import { GOLDEN_FOLDER } from '../forward/golden.test.fixture';
import type { CollapsePlanner, CollapseStep } from '../reports/collapse';
import { checkPlanner, findStack, resolvedPlanner, type SearchOptions, surveyDepth } from './search';
import { removedLayers } from './stack';

const drop = { variant: 'drop', parts: 'linear' } as const;
const rdsc = { variant: 'rdsc', parts: 'linear' } as const;
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
    const found = await findStack({ kind: 'influence', target: { remove: 1 } }, drop, options);
    const { influence } = found.measure!;
    expect(removedLayers(found.stack, 3)).toEqual([influence.indexOf(Math.min(...influence))]);
    expect(found.similarity!.sequences).toHaveLength(1);
    expect(options.passes).toEqual(['measuring 4', expect.stringMatching(/^searching/)]);
    // a merging variant keeps layer 0, which has no layer before it
    const merged = await findStack({ kind: 'influence', target: { remove: 2 } }, rdsc, options);
    expect(removedLayers(merged.stack, 3)).toEqual([1, 2]);
  });

  it('by angular distance removes a block that layer 0 is not in', async () => {
    const found = await findStack(
      { kind: 'angular', target: { ratio: 0.34 }, tokens: 'all' },
      drop,
      await optionsOf('gemma2'),
    );
    const { allTokens } = found.measure!.distance;
    const best = allTokens[1]![2]! < allTokens[2]![3]! ? 1 : 2;
    expect(removedLayers(found.stack, 3)).toEqual([best]);
  });

  it('greedily, step by step, and says so when nothing is similar enough', async () => {
    const options = await optionsOf('smollm3');
    const found = await findStack({ kind: 'laco', block: 2, interval: 1, threshold: -1 }, rdsc, options);
    expect(found.stack).toHaveLength(2);
    expect(found.steps).toEqual(options.steps);
    expect(found.similarity!.mean).toBe(found.steps.at(-1)!.similarity);
    const strict = findStack({ kind: 'laco', block: 2, interval: 1, threshold: 0.999999 }, rdsc, options);
    await expect(strict).rejects.toMatchObject({
      code: 'NothingToCollapse',
      message: expect.stringMatching(/the most similar of 1 candidate reaches/),
    });
    await expect(
      findStack({ kind: 'influence', target: { threshold: 1e-9 } }, drop, options),
    ).rejects.toMatchObject({ code: 'NothingToCollapse' });
  });

  it('takes a choice by hand without a text, unmeasured', async () => {
    const options = { ...(await optionsOf('llama')), sequences: [] };
    const found = await findStack({ kind: 'manual', remove: [1] }, rdsc, options);
    expect(found).toMatchObject({ similarity: null, measure: null });
  });

  it('stops when it is cancelled', async () => {
    const controller = new AbortController();
    const options = { ...(await optionsOf('llama')), signal: controller.signal };
    controller.abort();
    await expect(findStack({ kind: 'manual', remove: [1] }, rdsc, options)).rejects.toMatchObject({
      code: 'Cancelled',
    });
  });
});

describe('surveyDepth', () => {
  it('gives the similarity of every place of a block', async () => {
    const options = await optionsOf('gemma3');
    const { measure, curve } = await surveyDepth({ block: 2, ...rdsc }, options);
    expect(measure.influence).toHaveLength(3);
    expect(curve!.map(({ layer }) => layer)).toEqual([0, 1]);
    for (const { layer, similarity } of curve!) {
      const alone = await findStack({ kind: 'manual', remove: [layer + 1] }, rdsc, options);
      expect(similarity).toBe(alone.similarity!.mean);
    }
    expect((await surveyDepth(undefined, options)).curve).toBeUndefined();
    await expect(surveyDepth({ block: 4, ...rdsc }, options)).rejects.toMatchObject({ code: 'Usage' });
  });
});

describe('checkPlanner', () => {
  it.each<[CollapsePlanner, string, RegExp]>([
    [{ kind: 'laco', block: 9 }, 'Usage', /No block of 9 layers fits/],
    [{ kind: 'laco', target: { remove: 8 } }, 'Usage', /Cannot remove 8 layers of 8/],
    [{ kind: 'laco', target: { ratio: 0.01 } }, 'NothingToCollapse', /less than half a layer/],
    [{ kind: 'influence', target: { threshold: 0 } }, 'Usage', /threshold of 0/],
    [{ kind: 'angular', target: { ratio: 1.5 } }, 'Usage', /share of 1.5/],
    [{ kind: 'manual', remove: [8] }, 'Usage', /no layer 8/],
    [{ kind: 'manual', remove: [] }, 'NothingToCollapse', /nothing to do/],
  ])('%j is refused in words', (planner, code, words) => {
    const act = () => checkPlanner(planner, rdsc, 8, true);
    expect(act).toThrow(expect.objectContaining({ code }));
    expect(act).toThrow(words);
  });
  it('wants a text for what has to be found out, and more than one layer', () => {
    const planner = { kind: 'influence', target: { remove: 1 } } as const;
    expect(() => checkPlanner(planner, drop, 8, false)).toThrow(/no calibration text/);
    expect(() => checkPlanner(planner, drop, 1, true)).toThrow(/single layer/);
    expect(() => checkPlanner(planner, drop, 8, true)).not.toThrow();
  });
  it('fills defaults in', () => {
    expect(resolvedPlanner({ kind: 'laco', block: 2 }, 8)).toEqual({
      kind: 'laco',
      block: 2,
      lowest: 0,
      highest: 7,
      interval: 2,
      threshold: 0.75,
    });
  });
});
