import { expect, test } from 'vitest';
import type { Recipe } from '../../formats/recipe';
import { amalgamCommand, mergekitCommand } from '../screens/RecipeYaml';

const recipe: Recipe = { mergeMethod: 'ties', models: [], parameters: {}, amalgam: {} };

test('mergekit is told the size of shards, and the seed where there is one', () => {
  expect(mergekitCommand(recipe, 'a-b')).toBe('mergekit-yaml a-b.yml ./a-b --out-shard-size 2B');
  const own = { ...recipe, amalgam: { shardBytes: 1_500_000_000, seed: 7 } };
  expect(mergekitCommand(own, 'm')).toBe(
    'mergekit-yaml m.yml ./m --out-shard-size 1500000000 --random-seed 7',
  );
});

test('an adapter needs a folder to be folded in', () => {
  const models = [{ model: 'a+b', parameters: {} }];
  expect(mergekitCommand({ ...recipe, models }, 'm')).toBe(
    'mergekit-yaml m.yml ./m --out-shard-size 2B --lora-merge-cache ./m-adapters',
  );
});

test('several documents are another command', () => {
  const staged = { ...recipe, stages: [{ ...recipe, name: 'first' }] };
  expect(mergekitCommand(staged, 'm')).toBe(
    'mergekit-multi m.yml --intermediate-dir ./m-stages --out-path ./m --out-shard-size 2B',
  );
});

test('Amalgam’s own command takes the same file', () => {
  expect(amalgamCommand('m')).toBe('npm run --silent amalgam -- merge m.yml --out ./m');
});
