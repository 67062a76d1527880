import { expect, test } from 'vitest';
import type { Recipe } from '../../formats/recipe';
import { amalgamCommand, mergekitCommand } from '../recipe/RecipeText';

const recipe: Recipe = { mergeMethod: 'ties', models: [], parameters: {}, amalgam: {} };

test.each<[string, Partial<Recipe>, string]>([
  ['the size of shards', {}, 'mergekit-yaml m.yml ./m --out-shard-size 2B'],
  [
    'the seed where there is one',
    { amalgam: { shardBytes: 1_500_000_000, seed: 7 } },
    'mergekit-yaml m.yml ./m --out-shard-size 1500000000 --random-seed 7',
  ],
  [
    'a folder to fold adapters in',
    { models: [{ model: 'a+b', parameters: {} }] },
    'mergekit-yaml m.yml ./m --out-shard-size 2B --lora-merge-cache ./m-adapters',
  ],
  [
    'several documents by another command',
    { stages: [{ ...recipe, name: 'first' }] },
    'mergekit-multi m.yml --intermediate-dir ./m-stages --out-path ./m --out-shard-size 2B',
  ],
])('mergekit is given %s', (_, change, command) => {
  expect(mergekitCommand({ ...recipe, ...change }, 'm')).toBe(command);
});

test('Amalgam’s own command takes the same file', () => {
  expect(amalgamCommand('m')).toBe('npm run --silent amalgam -- merge m.yml --out ./m');
});
