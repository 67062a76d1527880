import { expect, test } from 'vitest';
import type { TensorReport } from '../../reports/job';
import type { FinishedRun } from '../state/runs';
import { keptEnergy, resultWords } from './ResultCard';

function report(name: string, elements: number, norm: number, keptNorm: number, kept: number): TensorReport {
  const contributors = [{ id: 'a', kept, threshold: 0, norm, keptNorm }];
  return {
    name,
    layer: 0,
    module: name,
    shape: [elements],
    dtype: 'F32',
    elements,
    copied: false,
    contributors,
    signConflict: norm / 10,
    cosine: [[1]],
    baseNorm: 1,
    outputChange: 0,
    nonFinite: 0,
  };
}

const reports = [report('x', 100, 3, 3, 20), report('y', 300, 4, 0, 60), report('z', 50, 0, 0, 10)];

test('kept energy is that of all tensors laid end to end; of who changes none there is none', () => {
  expect(keptEnergy(reports, 'a')).toBe(9 / 25);
  expect(keptEnergy(reports, 'nobody')).toBeNull();
});

test('the sentence says what was counted of each contributor, and only the size where nothing was, or all was kept', () => {
  const run = {
    methodTitle: 'TIES 0.20',
    contributors: [
      { id: 'a', label: 'kitchen', color: 0 },
      { id: 'b', label: 'harbour', color: 1 },
    ],
    planned: reports,
    report: { shards: [{ file: 'x', bytes: 2_480_000, hash: '' }], tensors: reports },
  } as unknown as FinishedRun;
  expect(resultWords(run).replaceAll(/\s/g, ' ')).toBe(
    'TIES 0.20 keeps 36.0 % of kitchen’s change, by energy.',
  );
  const none = { ...run, report: { ...run.report, tensors: [] } };
  expect(resultWords(none).replaceAll(/\s/g, ' ')).toBe('TIES 0.20: 3 tensors, 2.48 MB.');
  // a method that leaves nothing out keeps all of all, which says nothing
  const all = { ...run, report: { ...run.report, tensors: [report('x', 100, 3, 3, 100)] } };
  expect(resultWords(all).replaceAll(/\s/g, ' ')).toBe('TIES 0.20: 3 tensors, 2.48 MB.');
});
