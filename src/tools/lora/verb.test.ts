import { expect, test } from 'vitest';
import { parseCommand } from '../../cli/command';
import { cutWords } from '../../reports/lora';
import { rankOf } from './options';
import type { ExtractLoraReport, MeasureLoraReport } from './report';
import { extractText, measuredText, verb } from './verb';

const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, ' ');
const module = (name: string, rank: number, error: number | null) => ({ module: name, rank, error });

test('an extraction in words: size, error, worst module, what is left out', () => {
  const left = Array.from({ length: 14 }, (_, i) => ({
    name: `b${i}.bias`,
    normDelta: i === 0 ? 0.5 : null,
    why: 'no room',
  }));
  const report = {
    modules: [module('q_proj', 4, 0.25), module('k_proj', 8, 0.5), module('v_proj', 8, null)],
    saved: [{ name: 'norm.weight', shape: [4], bytes: 16 }],
    left,
    merged: { error: 0.3, maxError: 0.0625, failed: [{ name: 'v', message: 'NaN.' }] },
    files: [{ file: 'adapter_model.safetensors', bytes: 1500 }],
    notes: ['A note.'],
    seconds: 2,
    engine: 'cpu',
    adapter: 'typed arrays',
  } as unknown as ExtractLoraReport;
  expect(plain(extractText(report, '/out')).split('\n')).toEqual([
    'Extracted 3 modules of rank 4 to 8, 1 tensor carried whole: 1.50 kB',
    'Merged back, 0.300 of the difference is left (largest single error 0.0625; worst module k_proj: 0.500)',
    'At ranks 4 to 8 the LoRA keeps 91.0 % of the change (‖Δ‖²).',
    'not finite when merged: v, NaN.',
    'A note.',
    'not carried: b0.bias, no room (norm of the change 0.500)',
    ...Array.from({ length: 11 }, (_, i) => `not carried: b${i + 1}.bias, no room`),
    'and 2 more; README.md names them all',
    'Written in 2.0 s on cpu (typed arrays): /out',
  ]);
});

test.each([
  [
    { kind: 'rank', rank: 8 },
    'leaves 65.0 % of the difference (‖Δ‖; 57.7 % of ‖Δ‖² is kept): this change is not of so low a rank.',
  ],
  [
    { kind: 'energy', share: 0.9 },
    'leaves 65.0 % of the difference (‖Δ‖; 57.7 % of ‖Δ‖² is kept): this change is not low-rank.',
  ],
] as const)('a poor result is called poor: %o', (rank, words) => {
  const merged = { error: 0.65, maxError: 0.1, failed: [] };
  const modules = [{ rank: 8 }] as ExtractLoraReport['modules'];
  expect(cutWords({ rank, modules, merged }).map(plain)).toEqual([`At rank 8 the LoRA ${words}`]);
  expect(cutWords({ rank, modules, merged: { ...merged, error: 0.45 } }).map(plain)).toEqual([
    'At rank 8 the LoRA keeps 79.8 % of the change (‖Δ‖²).',
  ]);
});

test('every way to choose ranks', () => {
  const rank = (...args: string[]) =>
    rankOf(verb.parse(['a', 'b', '--out', 'd', ...args]).options as Parameters<typeof rankOf>[0]);
  expect(rank('--rank', '16')).toEqual({ kind: 'rank', rank: 16 });
  expect(rank('--energy', '0.95')).toEqual({ kind: 'energy', share: 0.95 });
  expect(rank('--cutoff', '1e-3')).toEqual({ kind: 'cutoff', ratio: 1e-3 });
  expect(rank('--budget', '1.5MB')).toEqual({ kind: 'bytes', bytes: 1_500_000 });
  expect(rank('--budget', '2048')).toEqual({ kind: 'bytes', bytes: 2048 });
});

test('modules, dtype and the rest', () => {
  const typed =
    'lora a b --out d --rank 4 --include attn,mlp --include up --exclude k_proj --embeddings lora --vectors skip --dtype bfloat16 --seed 3 --max-rank 8 --report r.json';
  expect(parseCommand(typed.split(' ')).parsed).toMatchObject({
    options: {
      report: 'r.json',
      ...{ include: ['attn', 'mlp', 'up'], exclude: ['k_proj'], embeddings: 'lora', vectors: 'skip' },
      ...{ dtype: 'BF16', seed: 3, maxRank: 8 },
    },
  });
});

test.each([
  [[], 'exactly one of --rank, --energy, --cutoff and --budget'],
  [['--rank', '8', '--energy', '0.9'], 'at most one of'],
  [['--rank', '0'], '--rank is 0'],
  [['--budget', 'much'], '--budget is much'],
  [['--budget', '0.5'], '--budget is 0.5'],
  [['--rank', '1', '--embeddings', 'x'], 'one of save, lora, skip'],
])('%j is refused in words', (args, words) => {
  expect(() => verb.parse(['a', 'b', '--out', 'd', ...args])).toThrow(words);
});

test('what says how it is written is refused where nothing is', () => {
  for (const args of [
    ['a', 'b', '--rank', '8'],
    ['a', '--energy', '0.9'],
    ['a', '--format', 'mlx'],
  ])
    expect(() => verb.parse(args)).toThrow('give --out DIR too');
});

test('one LoRA, or two models: what is typed for one is refused for the other', () => {
  expect(verb.parse(['a']).options).toMatchObject({ scale: 1, format: 'peft', dtype: 'F32' });
  expect(verb.parse(['a', '--out', 'd', '--scale', '0.5', '--format', 'mlx']).options).toMatchObject({
    ...{ scale: 0.5, format: 'mlx' },
  });
  expect(verb.parse(['a', 'b']).subjects).toEqual(['a', 'b']);
  expect(() => verb.parse(['a', 'b', '--out', 'd'])).toThrow(/exactly one of --rank/);
  expect(() => verb.parse(['a', 'b', '--scale', '2'])).toThrow(/--scale is for one LoRA/);
  expect(() => verb.parse(['a', 'b.yml'])).toThrow(/merge b\.yml --adapter/);
  expect(() => verb.parse(['a', 'b', 'c'])).toThrow(/one LoRA, or a base and a fine-tune/);
});

test('a measured LoRA in words: what it is, and the ranks of each module', () => {
  const report = {
    modules: [
      { module: 'q', kind: 'linear', shape: [8, 4], rank: 4, scale: 2, squares: 10, values: [3, 1] },
      { module: 'k', kind: 'linear', shape: [8, 4], rank: null, scale: null, squares: 4, values: [1] },
    ],
    facts: [{ label: 'Kind', value: 'LoRA, r 4, α 8' }],
    notes: ['A note.'],
  } as unknown as MeasureLoraReport;
  const lines = plain(measuredText(report)).split('\n');
  expect(lines[0]).toBe('Kind         LoRA, r 4, α 8');
  expect(lines[3]).toMatch(/^q +8 × 4 +4 +2\.00 +3\.16 +1 \/ 2 \/ 2$/);
  expect(lines[4]).toMatch(/^k +8 × 4 +2\.00 +>1 \/ >1 \/ >1$/);
  expect(lines.at(-1)).toBe('A note.');
});
