import { describe, expect, test } from 'vitest';
import type { MergeReport } from '../../reports/merge';
import { verification, whyNotVerify } from '../screens/PlanSection';
import { initialState, type StudioState } from './studio-state';

const report = (engine: 'cpu' | 'webgpu', hash: string, outputChange: number): MergeReport => ({
  recipe: { mergeMethod: 'linear', models: [], parameters: {}, amalgam: {} },
  recipeSha256: 'r',
  engine,
  adapter: '',
  version: '',
  seconds: 2,
  stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
  peakBytes: 0,
  inputs: [],
  shards: [
    { file: 'a', bytes: 10, hash: 'same' },
    { file: 'b', bytes: 5, hash },
  ],
  tensors: [
    {
      name: 'w',
      layer: 0,
      module: 'm',
      shape: [1],
      dtype: 'F32',
      elements: 1,
      copied: false,
      contributors: [],
      signConflict: 0,
      cosine: [],
      baseNorm: 1,
      outputChange,
      nonFinite: 0,
    },
  ],
});

describe('verification', () => {
  test('the same hashes mean the same bytes', () => {
    const same = verification(report('webgpu', 'x', 0.1), report('cpu', 'x', 0.1));
    expect(same).toMatchObject({ differing: [], tensors: [] });
    expect(same.engines).toEqual([
      { engine: 'webgpu', seconds: 2, bytes: 15 },
      { engine: 'cpu', seconds: 2, bytes: 15 },
    ]);
  });

  test('names the files and tensors that differ, and files that only one has', () => {
    const other = report('cpu', 'y', 0.2);
    expect(verification(report('webgpu', 'x', 0.1), other)).toMatchObject({
      differing: ['b'],
      tensors: ['w'],
    });
    const more = { ...other, shards: [...other.shards, { file: 'c', bytes: 1, hash: 'z' }] };
    expect(verification(report('webgpu', 'y', 0.2), more)).toMatchObject({ differing: ['c'], tensors: [] });
  });

  test('needs a finished run and a second engine', () => {
    expect(whyNotVerify(initialState)).toMatch(/Nothing/);
    const state = {
      ...initialState,
      runs: [{ id: 'x', report: report('cpu', 'x', 0) }],
      currentRunId: 'x',
      engine: {
        ...initialState.engine,
        status: 'ready',
        info: { webgpu: { available: false, why: 'No GPU.' } },
      },
    } as unknown as StudioState;
    expect(whyNotVerify(state)).toBe('There is no other engine here: No GPU.');
  });
});
