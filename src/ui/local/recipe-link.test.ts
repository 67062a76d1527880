import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withRecipeLink, withStudioLink } from '../../formats/model-card';
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

test('a card carries its recipe in a link, until it has one to the Hub', async () => {
  const yaml = 'merge_method: linear\nmodels:\n  - model: Käse/ß?/+\n';
  const card = '---\ntags: []\n---\n\n# Merged model\n\nText.\n';
  const linked = withRecipeLink(card, 'https://studio.example/a/', yaml);
  const address = /\[Open this recipe in Amalgam\]\((\S+)\)/.exec(linked)![1]!;
  expect(await recipeInLink(new URL(address).hash)).toBe(yaml);
  expect(linked.replace(/\[Open.*\n\n/, '')).toBe(card);
  const pushed = withStudioLink(linked, 'https://studio.example/a/', 'me/mine');
  expect(pushed).toBe(withStudioLink(card, 'https://studio.example/a/', 'me/mine'));
  expect(pushed).toContain('(https://studio.example/a/#hub=me/mine)');
  expect(withRecipeLink(card, 'https://studio.example/', 'x'.repeat(9000))).toBe(card);
  expect(withRecipeLink(card, 'http://localhost/', yaml)).toBe(card);
});
