import { expect, test } from 'vitest';
import { parseCommand, USAGE } from '../../cli/command';
import type { CompareReport } from './report';
import { compareText, verb } from './verb';

const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, ' ');
test('a comparison in words, on lines of their own', () => {
  const report = {
    words: ['Two tensors.'],
    architecture: { words: ['Same architecture.'] },
    config: { words: ['Same\u202e config.'] },
    tokenizer: { words: ['Same tokenizer.'] },
    files: ['difference.txt'],
    seconds: 0.5,
    engine: 'webgpu',
    adapter: 'GPU',
  } as unknown as CompareReport;
  expect(plain(compareText(report, '/out')).split('\n')).toEqual([
    'Two tensors.',
    'Same architecture.',
    'Same\\u{202e} config.',
    'Same tokenizer.',
    'Compared in 500 ms on webgpu (GPU): /out, 1 file',
  ]);
});

test('two models and a folder; the figures of the reports as defaults', () => {
  expect(parseCommand(['compare', 'base', 'base+lora', '--out', 'd'])).toMatchObject({
    verb: 'compare',
    parsed: {
      subjects: ['base', 'base+lora'],
      options: { out: 'd', engine: 'auto', threshold: 1e-6, loraAnalysis: true },
    },
  });
  const typed = 'a b --out d --threshold 0 --no-lora-analysis --engine cpu';
  expect(verb.parse(typed.split(' '))).toMatchObject({
    options: { threshold: 0, loraAnalysis: false, engine: 'cpu' },
  });
});

test.each([
  [['compare', 'a', '--out', 'd'], 'compare needs <base> and <finetuned>.'],
  [['compare', 'a', 'b', 'c', '--out', 'd'], 'compare takes <base> and <finetuned>; c is too much.'],
  [['compare', 'a', 'b'], 'compare needs --out DIR'],
  [['compare', 'a', 'b', '--out', 'd', '--threshold', 'x'], '--threshold is x'],
  [['compare', 'a', 'b', '--out', 'd', '--metric', 'cosine'], 'compare has no option --metric.'],
])('%j is refused in words', (args, words) => {
  expect(() => parseCommand(args)).toThrow(words);
});

test('the help names both verbs that take a pair', () => {
  expect(USAGE).toMatch(/compare <base> <finetuned> --out DIR.*lora <lora>/s);
});
