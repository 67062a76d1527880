import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseModelConfig } from '../formats/model-config';
import { resolveArchitecture } from '../models/resolution';
import type { CollapsePlanner } from '../reports/collapse';
import { collapseCard } from './collapse-card';
import { collapseNotes, layerList, mergedLayers, plannerWords } from './collapse-words';
import { collapseAt, removeLayers, wholeStack } from './stack';

const architecture = (name: string) =>
  resolveArchitecture(
    parseModelConfig(readFileSync(`e2e/fixtures/golden/forward/${name}/config.json`, 'utf8'), 'config.json'),
  );

describe('words', () => {
  it('lists layers', () => {
    expect(layerList([1, 3, 4, 5, 9])).toBe('1, 3 to 5 and 9');
    expect(layerList([3, 4])).toBe('3 and 4');
    expect(layerList([])).toBe('none');
  });
  it('says what merged layers are made of', () => {
    const stack = collapseAt(wholeStack(5), 1, 2, { variant: 'rdsc', parts: 'linear' });
    expect(mergedLayers(stack)).toEqual([
      'layer 1 (was 1): attention = − θ1 + θ2 + θ3; mlp = − θ1 + θ2 + θ3',
    ]);
    expect(mergedLayers(removeLayers(5, [2], { variant: 'drop', parts: 'full' }))).toEqual([]);
  });
  it('names planners with their settings', () => {
    expect(plannerWords({ kind: 'influence', target: { ratio: 0.25 } })).toBe(
      'least block influence, 25 % to go',
    );
    expect(
      plannerWords({
        kind: 'laco',
        block: 3,
        lowest: 0,
        highest: 7,
        interval: 2,
        threshold: 0.75,
        target: { remove: 2 },
      }),
    ).toBe(
      "LaCo's greedy loop, blocks of 3 from layer 7 down to 0, interval 2, similarity above 0.75, 2 to go",
    );
  });
  it('notes mixed kinds of layers, fields that were written, and a target that was not reached', () => {
    const manual: CollapsePlanner = { kind: 'manual', remove: [1] };
    const mixed = removeLayers(3, [1], { variant: 'replace-last', parts: 'linear' });
    expect(collapseNotes(manual, mixed, architecture('gemma2'), ['layer_types'], 1)).toEqual([
      expect.stringMatching(/config.json now says layer_types: in a gemma2/),
      expect.stringMatching(/attention of layer 0 comes from layers with other windows/),
    ]);
    const same = removeLayers(2, [1], { variant: 'replace-last', parts: 'linear' });
    expect(collapseNotes(manual, same, architecture('llama'), [], 1)).toEqual([]);
    const laco: CollapsePlanner = { kind: 'laco', target: { remove: 2 } };
    expect(collapseNotes(laco, wholeStack(2), architecture('llama'), [], 1)).toEqual([
      expect.stringMatching(/has 2 layers, not the 1 that were the target/),
    ]);
  });
});

describe('collapseCard', () => {
  const report: Parameters<typeof collapseCard>[0] = {
    model: 'me/[x](y)',
    engine: 'cpu',
    adapter: 'typed arrays',
    version: '0.1.0',
    planner: { kind: 'manual', remove: [2, 3] },
    variant: 'rdsc',
    parts: 'linear',
    layers: { before: 5, after: 3 },
    parameters: { before: 1000, after: 640 },
    removed: [2, 3],
    stack: [...collapseAt(wholeStack(5), 1, 2, { variant: 'rdsc', parts: 'linear' })],
    steps: [],
    measure: null,
    calibration: null,
    similarity: null,
    perplexity: null,
    inputs: [],
    notes: ['A <b>note</b>.'],
  };
  it('says what was removed and that the cost was not measured', () => {
    const card = collapseCard(report, undefined);
    expect(card).toContain('Layers\\: 3 of 5. Removed\\: 2 and 3');
    expect(card).toContain('36.0 % less');
    expect(card).toContain('Its effect on quality was not measured.');
    expect(card).toContain('`me/[x](y)`');
    expect(card).not.toContain('<b>');
    expect(card).not.toContain('base_model');
  });
  it('says the cost, and the original on the Hub', () => {
    const evaluation = (perplexity: number) => ({
      perplexity,
      meanNll: Math.log(perplexity),
      tokens: 99,
      bitsPerByte: null,
      protocol: { window: 256, stride: 128, bos: null },
      engine: 'cpu' as const,
      adapter: '',
      seconds: 1,
      peakBytes: 1,
    });
    const card = collapseCard(
      {
        ...report,
        notes: [],
        calibration: { sequences: 2, tokens: 300, window: 256 },
        similarity: { mean: 0.87654, sequences: [0.87654] },
        perplexity: { before: evaluation(12.5), after: evaluation(20.25) },
      },
      'me/model',
    );
    expect(card).toContain('base_model:\n  - me/model');
    expect(card).toContain('Similarity to the original\\: 0.8765');
    expect(card).toContain('Perplexity on 99 tokens\\: 12.500 before, 20.250 after');
    expect(card).toContain('300 tokens in 2 sequences');
  });
});
