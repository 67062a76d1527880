import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recipeInLink, recipeLink } from '../state/recipe-draft';

const PAGE = 'https://amalgam.example/studio?x=1#old';

test('any text comes back, and the address keeps its path', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (yaml) => {
      const link = new URL(await recipeLink(yaml, PAGE));
      expect(link.href.startsWith('https://amalgam.example/studio?x=1#recipe=')).toBe(true);
      expect(await recipeInLink(link.hash)).toBe(yaml.toWellFormed());
    }),
    { numRuns: 50 },
  );
});

test('an address without a recipe has none', async () => {
  expect(await recipeInLink('')).toBeUndefined();
  expect(await recipeInLink('#layers')).toBeUndefined();
});

test('a damaged link is named, whatever is wrong with it', async () => {
  const { hash } = new URL(await recipeLink('merge_method: ties\n'.repeat(30), PAGE));
  const damaged = [
    '#recipe=',
    '#recipe=<b>',
    '#recipe=A',
    hash.slice(0, -4),
    `#recipe=${'A'.repeat(100_001)}`,
  ];
  for (const text of damaged) await expect(recipeInLink(text)).rejects.toMatchObject({ code: 'LinkInvalid' });
});

test('a link that inflates without end is refused', async () => {
  const bomb = new URL(await recipeLink('a'.repeat(2_000_000), PAGE));
  await expect(recipeInLink(bomb.hash)).rejects.toMatchObject({ code: 'LinkInvalid' });
});
