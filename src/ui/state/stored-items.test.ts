import { describe, expect, test } from 'vitest';
import type { InterruptedRun } from '../../reports/merge';
import { storedGroups } from './stored-items';

const cut: InterruptedRun = {
  destination: { kind: 'downloads', name: 'half' },
  recipe: { mergeMethod: 'linear', models: [], parameters: {}, amalgam: {} },
  engine: 'cpu',
  adapter: '',
  startedAt: '2026-01-01T00:00:00Z',
  tensorsDone: 3,
  tensors: 9,
  bytesDone: 1,
  bytes: 3,
};

describe('what is kept', () => {
  test('is grouped by what deleting it costs, the largest first', () => {
    const groups = storedGroups(
      {
        blobs: [
          { sha256: 'a'.repeat(64), bytes: 10, name: 'small.safetensors' },
          { sha256: 'b'.repeat(64), bytes: 90, name: 'large.safetensors' },
        ],
        outputs: [{ name: 'whole', bytes: 7, complete: true, files: ['model.safetensors'] }],
        masks: [],
      },
      [],
    );
    expect(groups.map((g) => [g.title, g.bytes])).toEqual([
      ['Downloads', 100],
      ['Merged models', 7],
    ]);
    expect(groups[0]?.items.map((t) => t.name)).toEqual(['large.safetensors', 'small.safetensors']);
  });

  test('of an interrupted merge is listed once, as what can go on', () => {
    const groups = storedGroups(
      { blobs: [], masks: [], outputs: [{ name: 'half', bytes: 5, complete: false, files: [] }] },
      [cut],
    );
    expect(groups.map((g) => g.kind)).toEqual(['interrupted']);
    expect(groups[0]?.items[0]).toMatchObject({ name: 'half', bytes: 5, detail: '3 of 9 tensors' });
  });

  test('unfinished without a way to go on is said to be unfinished', () => {
    const cache = { blobs: [], masks: [], outputs: [{ name: 'left', bytes: 5, complete: false, files: [] }] };
    expect(storedGroups(cache, [])[0]?.items[0]?.detail).toBe('unfinished');
  });
});
