import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { cardErrors } from '../../e2e/fake-hub/model-card';
import { type CardResult, cardWithResults } from './card-results';

const swag: CardResult = {
  task: 'hellaswag',
  dataset: { id: 'Rowan/hellaswag', revision: 'a'.repeat(40), config: 'default' },
  split: 'validation',
  fewshot: 5,
  items: 200,
  original: 10_042,
  sampleSeed: null,
  metrics: [
    { type: 'acc', value: 0.41, stderr: 0.0349 },
    { type: 'acc_norm', value: 0.5, stderr: null },
  ],
};
const own: CardResult = {
  ...swag,
  task: 'my <b>trade</b>',
  dataset: null,
  split: null,
  fewshot: 0,
  items: 30,
  original: 30,
  metrics: [{ type: 'acc', value: 0.7, stderr: 0.085 }],
};
const CARD =
  '---\nlibrary_name: transformers # as it is\ntags:\n  - merge\n---\n\n# Merged model\n\n---\n\nEnd\n';

const front = (card: string) => parse(/^---\n([\s\S]*?)\n---\n/.exec(card)![1]!) as Record<string, unknown>;

test('results stand in the front matter as the Hub reads them, and change nothing else', () => {
  const card = cardWithResults(CARD, 'merged', [swag, own]);
  expect(cardErrors(card)).toEqual([]);
  expect(card.endsWith('---\n\n# Merged model\n\n---\n\nEnd\n')).toBe(true);
  expect(
    card.startsWith('---\nlibrary_name: transformers # as it is\ntags:\n  - merge\nmodel-index:\n'),
  ).toBe(true);
  expect(card).not.toContain('<b>');
  expect(front(card)['model-index']).toEqual([
    {
      name: 'merged',
      results: [
        {
          task: { type: 'text-generation', name: 'Text generation' },
          dataset: {
            name: 'hellaswag',
            type: 'Rowan/hellaswag',
            config: 'default',
            split: 'validation',
            revision: 'a'.repeat(40),
            args: { num_few_shot: 5 },
          },
          metrics: [
            {
              type: 'acc',
              value: 0.41,
              name: 'acc ± 0.0349 (200 of 10042 items, the first)',
              verified: false,
            },
            {
              type: 'acc_norm',
              value: 0.5,
              name: 'acc_norm (200 of 10042 items, the first)',
              verified: false,
            },
          ],
        },
        expect.objectContaining({
          dataset: { name: 'my <b>trade</b>', type: 'my <b>trade</b>', args: { num_few_shot: 0 } },
        }),
      ],
    },
  ]);
});

test('a task scored again replaces what was there; other tasks stay, once', () => {
  const before = cardWithResults(CARD, 'merged', [swag, own]);
  const again = { ...swag, metrics: [{ type: 'acc', value: 0.43, stderr: null }] };
  const after = cardWithResults(before, 'another', [again]);
  const [{ name, results }] = front(after)['model-index'] as [
    { name: string; results: { dataset: { name: string } }[] },
  ];
  expect(name).toBe('merged');
  expect(results.map(({ dataset }) => dataset.name)).toEqual(['my <b>trade</b>', 'hellaswag']);
  expect(cardWithResults(after, 'x', [again])).toBe(after);
  expect(cardWithResults(CARD, 'x', [])).toBe(CARD);
});

test('a card without front matter gets one; an index that is none is not taken over', () => {
  expect(cardWithResults('# Mine\n', 'm', [swag])).toMatch(/^---\nmodel-index:\n[\s\S]*---\n\n# Mine\n$/);
  const ruled = 'Mine\n\n---\n\na\n\n---\n';
  expect(cardWithResults(ruled, 'm', [swag]).endsWith(`---\n\n${ruled}`)).toBe(true);
  const odd = cardWithResults('---\nmodel-index: nonsense\n---\ntext', 'm', [swag]);
  expect(cardErrors(odd)).toEqual([]);
  expect(odd.endsWith('---\ntext')).toBe(true);
});

test('the fake Hub takes no index without its names, types and numbers', () => {
  const card = cardWithResults(CARD, 'merged', [swag]);
  for (const gone of [
    /name: merged/,
    /type: text-generation/,
    /type: Rowan\/hellaswag/,
    /value: 0.41/,
    /- type: acc$/m,
  ]) {
    expect(
      cardErrors(card.replace(gone, '- other: 1'.slice(gone.source.startsWith('-') ? 0 : 2))),
      gone.source,
    ).not.toEqual([]);
  }
});
