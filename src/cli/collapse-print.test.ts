import { describe, expect, test } from 'vitest';
import type { CollapseReport, MeasureDepthReport } from '../reports/collapse';
import { collapseText, measureText } from './collapse-print';

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

describe('what a collapse prints', () => {
  test('steps, size, cost and notes', () => {
    const report: CollapseReport = {
      model: 'm',
      engine: 'cpu',
      adapter: 'typed arrays',
      version: '0.1.0',
      seconds: 2,
      stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
      planner: { kind: 'laco' },
      variant: 'rdsc',
      parts: 'linear',
      layers: { before: 5, after: 4 },
      parameters: { before: 1000, after: 800 },
      removed: [3],
      stack: [],
      steps: [
        { layer: 2, count: 1, similarity: 0.9, accepted: true, layers: 4 },
        { layer: 1, count: 1, similarity: null, accepted: false, layers: 4 },
      ],
      measure: null,
      calibration: null,
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

  test('a line per layer', () => {
    const map = [
      [0, 0.1, 0.3],
      [0.1, 0, 0.2],
      [0.3, 0.2, 0],
    ];
    const report: MeasureDepthReport = {
      model: 'm',
      engine: 'cpu',
      adapter: 'typed arrays',
      seconds: 1,
      layers: 2,
      calibration: { sequences: 1, tokens: 256, window: 256 },
      influence: [0.05, 0.1],
      distance: { lastToken: map, allTokens: map },
      curve: [{ layer: 0, similarity: 0.75 }],
    };
    const lines = plain(measureText(report)).split('\n');
    expect(lines[0]).toMatch(/layer .*block influence .*distance, last tokens .*similarity when collapsed/);
    expect(lines[1]!.trim().split(/ {2,}/)).toEqual(['0', '0.0500', '0.100', '0.100', '0.750']);
    expect(lines[2]!.trim().split(/ {2,}/)).toEqual(['1', '0.100', '0.200', '0.200']);
  });
});
