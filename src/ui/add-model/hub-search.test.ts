import { expect, test } from 'vitest';
import type { HubHit, HubQuery } from '../../reports/models';
import type { StudioWorker } from '../state/studio';
import { fixtureWorker } from '../worker.test.fixture';
import { searchGroups } from './ModelList';

const hit = (id: string): HubHit => ({
  id,
  downloads: 1,
  likes: 1,
  updatedAt: '2026-01-01T00:00:00.000Z',
  gated: false,
  private: false,
});

function hub(answer: (query: HubQuery) => string[]): { worker: StudioWorker; asked: HubQuery[] } {
  const asked: HubQuery[] = [];
  const worker: StudioWorker = {
    ...fixtureWorker(),
    searchHub: async (query) => {
      asked.push(query);
      return answer(query).map(hit);
    },
  };
  return { worker, asked };
}

test('a base’s adapters and fine-tunes come first, each model once', async () => {
  const { worker } = hub(({ derivedFrom }) => {
    if (derivedFrom?.kind === 'adapter') return ['me/lora'];
    if (derivedFrom?.kind === 'finetune') return ['me/tune'];
    return ['org/other', 'me/lora'];
  });
  const groups = await searchGroups(worker, 'lo', 'org/base');
  expect(groups.map((g) => [g.title, g.hits.map((h) => h.id)])).toEqual([
    ['Adapters of base', ['me/lora']],
    ['Fine-tunes of base', ['me/tune']],
    ['Other models', ['org/other']],
  ]);
});

test('without words only what derives from the base is asked for; empty groups are left out', async () => {
  const { worker, asked } = hub(() => []);
  expect(await searchGroups(worker, '', 'org/base')).toEqual([]);
  expect(asked.map((q) => q.derivedFrom?.kind)).toEqual(['adapter', 'finetune']);
});

test('without a base there is one plain search', async () => {
  const { worker, asked } = hub(() => ['org/name']);
  const groups = await searchGroups(worker, 'name', null);
  expect(groups.map((g) => g.title)).toEqual(['Models']);
  expect(asked).toEqual([{ text: 'name', limit: 20 }]);
});
