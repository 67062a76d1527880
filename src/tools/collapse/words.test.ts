import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { goldenFolder } from '../../../e2e/goldens';
import { parseModelConfig } from '../../formats/model-config';
import { resolveArchitecture } from '../../models/resolution';
import { defaultsOf } from '../../reports/option';
import { collapseOptions } from './options';
import type { CollapseReport, MeasureLayersReport } from './report';
import { collapseAt, removeLayers, wholeStack } from './stack';
import { collapseCard, collapseNotes, collapseText, measureText, mergedLayers, plannerWords } from './words';

const settings = (changes: Partial<CollapseReport['settings']>) => ({
  ...defaultsOf(collapseOptions),
  ...{ highest: 7, variant: 'rdsc' as const },
  ...changes,
});

const architecture = (name: string) =>
  resolveArchitecture(
    parseModelConfig(readFileSync(`${goldenFolder('forward')}/${name}/config.json`, 'utf8'), 'config.json'),
  );

/** No-break spaces of the number formats as ordinary ones. */
const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, ' ');
const evaluation = (perplexity: number) => ({
  perplexity,
  meanNll: Math.log(perplexity),
  tokens: 1816,
  bitsPerByte: null,
  protocol: { window: 256, stride: 128, bos: 1 },
  engine: 'cpu' as const,
  adapter: '',
  seconds: 1,
  peakBytes: 1,
});

describe('words', () => {
  it('says what merged layers are made of', () => {
    const stack = collapseAt(wholeStack(5), 1, 2, 'rdsc');
    expect(mergedLayers(stack)).toEqual(['layer 1 (was 1): linear layers = − θ1 + θ2 + θ3']);
    expect(mergedLayers(removeLayers(5, [2], 'drop'))).toEqual([]);
  });
  it('names planners with their settings', () => {
    expect(plannerWords(settings({ planner: 'influence', ratio: 0.25 }))).toBe(
      'least block influence, 25 % to go',
    );
    expect(plannerWords(settings({ remove: 2 }))).toBe(
      "LaCo's greedy loop, blocks of 3 from layer 7 down to 0, interval 2, similarity above 0.75, 2 to go",
    );
  });
  it('notes mixed kinds of layers, fields that were written, and a target that was not reached', () => {
    const chosen = settings({ planner: 'influence', remove: 1 });
    const mixed = removeLayers(3, [1], 'rdsc');
    expect(collapseNotes(chosen, mixed, architecture('gemma2'), ['layer_types'], 1)).toEqual([
      expect.stringMatching(/config.json now says layer_types: in a gemma2/),
      expect.stringMatching(/attention of layer 0 comes from layers with other windows/),
    ]);
    const same = removeLayers(2, [1], 'rdsc');
    expect(collapseNotes(chosen, same, architecture('llama'), [], 1)).toEqual([]);
    const laco = settings({ remove: 2 });
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
    settings: settings({ planner: 'angular', remove: 2 }),
    layers: { before: 5, after: 3 },
    parameters: { before: 1000, after: 640 },
    removed: [2, 3],
    stack: [...collapseAt(wholeStack(5), 1, 2, 'rdsc')],
    steps: [],
    measure: null,
    calibration: { sequences: 2, tokens: 300, window: 256 },
    similarity: { mean: 0.87654, sequences: [0.87654] },
    perplexity: null,
    notes: ['A <b>note</b>.'],
  };
  it('says what was removed, and names as names', () => {
    const card = collapseCard(report, undefined);
    expect(card).toContain('Layers\\: 3 of 5. Removed\\: 2 and 3');
    expect(card).toContain('36.0 % less');
    expect(card).toContain('least angular distance of last tokens, 2 to go');
    expect(card).not.toContain('Perplexity');
    expect(card).toContain('`me/[x](y)`');
    expect(card).not.toContain('<b>');
    expect(card).not.toContain('base_model');
  });
  it('says the cost, and the original on the Hub', () => {
    const card = collapseCard(
      {
        ...report,
        notes: [],
        perplexity: { before: evaluation(12.5), after: evaluation(20.25) },
      },
      'me/model',
    );
    expect(card).toContain('base_model:\n  - me/model');
    expect(card).toContain('Similarity to the original\\: 0.8765');
    expect(card).toContain('Perplexity on 1816 tokens\\: 12.500 before, 20.250 after');
    expect(card).toContain('300 tokens in 2 sequences');
  });
});

describe('what a collapse prints', () => {
  it('steps, size, cost and notes', () => {
    const report: CollapseReport = {
      model: 'm',
      engine: 'cpu',
      adapter: 'typed arrays',
      version: '0.1.0',
      seconds: 2,
      stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
      settings: settings({}),
      layers: { before: 5, after: 4 },
      parameters: { before: 1000, after: 800 },
      removed: [3],
      stack: [],
      steps: [
        { layer: 2, count: 1, similarity: 0.9, accepted: true, layers: 4 },
        { layer: 1, count: 1, similarity: null, accepted: false, layers: 4 },
      ],
      measure: null,
      calibration: { sequences: 1, tokens: 256, window: 256 },
      similarity: { mean: 0.9, sequences: [0.9] },
      perplexity: { before: evaluation(3.74), after: evaluation(5.5) },
      inputs: [],
      shards: [{ file: 'model.safetensors', bytes: 2048, hash: '' }],
      files: ['config.json'],
      notes: ['A note.'],
    };
    expect(plain(collapseText(report, '/out')).split('\n')).toEqual([
      'layer 2 takes in 1: similarity 0.900, kept, 4 layers',
      'layer 1 takes in 1: similarity not finite, not kept',
      '4 of 5 layers, 800 of 1 000 parameters; removed: 3',
      'Similarity to the original 0.900',
      'Perplexity 3.74 before, 5.50 after, over 1 816 tokens',
      'A note.',
      expect.stringMatching(/^Written in .* on cpu \(typed arrays\): \/out, 2.05 kB$/),
    ]);
  });

  it('a line per layer', () => {
    const map = [
      [0, 0.1, 0.3],
      [0.1, 0, 0.2],
      [0.3, 0.2, 0],
    ];
    const report: MeasureLayersReport = {
      model: 'm',
      engine: 'cpu',
      adapter: 'typed arrays',
      seconds: 1,
      layers: 2,
      calibration: { sequences: 1, tokens: 256, window: 256 },
      influence: [0.05, 0.1],
      distance: map,
      curve: [{ layer: 0, similarity: 0.75 }],
    };
    const lines = plain(measureText(report)).split('\n');
    expect(lines[0]).toMatch(/layer .*block influence .*angular distance .*similarity when collapsed/);
    expect(lines[1]!.trim().split(/ {2,}/)).toEqual(['0', '0.0500', '0.100', '0.750']);
    expect(lines[2]!.trim().split(/ {2,}/)).toEqual(['1', '0.100', '0.200']);
  });
});
