import { expect, test } from 'vitest';
import { parseCommand } from '../../cli/command';
import { rankOf } from './options';
import { verb } from './verb';

test('every way to choose ranks', () => {
  const rank = (...args: string[]) => rankOf(verb.parse(['a', 'b', '--out', 'd', ...args]).options);
  expect(rank('--rank', '16')).toEqual({ kind: 'rank', rank: 16 });
  expect(rank('--energy', '0.95')).toEqual({ kind: 'energy', share: 0.95 });
  expect(rank('--cutoff', '1e-3')).toEqual({ kind: 'cutoff', ratio: 1e-3 });
  expect(rank('--budget', '1.5MB')).toEqual({ kind: 'bytes', bytes: 1_500_000 });
  expect(rank('--budget', '2048')).toEqual({ kind: 'bytes', bytes: 2048 });
});

test('modules, dtype and the rest', () => {
  const typed =
    'extract-lora a b --out d --rank 4 --include attn,mlp --include up --exclude k_proj --embeddings lora --vectors skip --dtype bfloat16 --seed 3 --max-rank 8 --report r.json --eval-text t.txt';
  expect(parseCommand(typed.split(' '))).toMatchObject({
    report: 'r.json',
    options: {
      ...{ include: ['attn', 'mlp', 'up'], exclude: ['k_proj'], embeddings: 'lora', vectors: 'skip' },
      ...{ dtype: 'BF16', seed: 3, maxRank: 8, evalText: 't.txt' },
    },
  });
});

test.each([
  [[], 'exactly one of --rank, --energy, --cutoff and --budget'],
  [['--rank', '8', '--energy', '0.9'], 'exactly one of'],
  [['--rank', '0'], '--rank is 0'],
  [['--budget', 'much'], '--budget is much'],
  [['--budget', '0.5'], '--budget is 0.5'],
  [['--rank', '1', '--embeddings', 'x'], 'one of save, lora, skip'],
  [['--rank', '1', '--eval-text', 'a', '--eval-tokens', 'b'], 'at most one of --eval-text and --eval-tokens'],
])('%j is refused in words', (args, words) => {
  expect(() => verb.parse(['a', 'b', '--out', 'd', ...args])).toThrow(words);
});
