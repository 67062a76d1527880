import { describe, expect, test } from 'vitest';
import { parseCommand, USAGE } from '../../cli/command';
import { extractLoraVerb } from '../extract/verb';
import { compareVerb } from './verb';

describe('compare', () => {
  test('two models and a folder; the figures of the reports as defaults', () => {
    expect(parseCommand(['compare', 'base', 'base+lora', '--out', 'd'])).toEqual({
      verb: 'compare',
      out: 'd',
      request: {
        base: 'base',
        finetuned: 'base+lora',
        engine: 'auto',
        threshold: 1e-6,
        top: 20,
        loraAnalysis: true,
        timeEngines: false,
      },
    });
    const { request } = compareVerb.parse(
      'a b --out d --threshold 0 --top 5 --no-lora-analysis --time-engines --engine cpu'.split(' '),
    );
    expect(request).toMatchObject({
      threshold: 0,
      top: 5,
      loraAnalysis: false,
      timeEngines: true,
      engine: 'cpu',
    });
  });
});

describe('extract-lora', () => {
  const rankOf = (...args: string[]) => extractLoraVerb.parse(['a', 'b', '--out', 'd', ...args]).request.rank;

  test('every way to choose ranks', () => {
    expect(rankOf('--rank', '16')).toEqual({ kind: 'rank', rank: 16 });
    expect(rankOf('--energy', '0.95')).toEqual({ kind: 'energy', share: 0.95 });
    expect(rankOf('--cutoff', '1e-3')).toEqual({ kind: 'cutoff', ratio: 1e-3 });
    expect(rankOf('--budget', '1.5MB')).toEqual({ kind: 'bytes', bytes: 1_500_000 });
    expect(rankOf('--budget', '2048')).toEqual({ kind: 'bytes', bytes: 2048 });
  });

  test('modules, dtype and the rest', () => {
    const command = parseCommand(
      'extract-lora a b --out d --rank 4 --include attn,mlp --include up --exclude k_proj --embeddings lora --vectors skip --dtype bfloat16 --seed 3 --max-rank 8 --report r.json'.split(
        ' ',
      ),
    );
    expect(command).toMatchObject({
      report: 'r.json',
      request: {
        include: ['attn', 'mlp', 'up'],
        exclude: ['k_proj'],
        embeddings: 'lora',
        vectors: 'skip',
        dtype: 'BF16',
        seed: 3,
        maxRank: 8,
      },
    });
  });
});

test.each([
  [['compare', 'a', '--out', 'd'], 'compare needs two models, the base and the fine-tune.'],
  [
    ['compare', 'a', 'b', 'c', '--out', 'd'],
    'compare takes two models, the base and the fine-tune; c is too much.',
  ],
  [['compare', 'a', 'b'], 'compare needs --out DIR'],
  [['compare', 'a', 'b', '--out', 'd', '--threshold', 'x'], '--threshold is x'],
  [['extract-lora', 'a', 'b', '--out', 'd'], 'exactly one of --rank, --energy, --cutoff and --budget'],
  [['extract-lora', 'a', 'b', '--out', 'd', '--rank', '8', '--energy', '0.9'], 'exactly one of'],
  [['extract-lora', 'a', 'b', '--out', 'd', '--rank', '0'], '--rank is 0'],
  [['extract-lora', 'a', 'b', '--out', 'd', '--budget', 'much'], '--budget is much'],
  [['extract-lora', 'a', 'b', '--out', 'd', '--rank', '1', '--embeddings', 'x'], 'one of save, lora, skip'],
])('%j is refused in words', (args, words) => {
  expect(() => parseCommand(args)).toThrow(words);
});

test('the help names both', () => {
  expect(USAGE).toMatch(/compare <base> <finetuned> --out DIR.*extract-lora <base> <finetuned> --out DIR/s);
});
