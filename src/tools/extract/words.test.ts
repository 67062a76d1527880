import { expect, test } from 'vitest';
import type { ExtractLoraReport } from './report';
import { extractText } from './words';

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
    merged: { error: 0.3, relative: 0.01, maxError: 0.0625, failed: [{ name: 'v', message: 'NaN.' }] },
    files: [{ file: 'adapter_model.safetensors', bytes: 1500 }],
    notes: ['A note.'],
    seconds: 2,
    engine: 'cpu',
    adapter: 'typed arrays',
  } as unknown as ExtractLoraReport;
  expect(plain(extractText(report, '/out')).split('\n')).toEqual([
    'Extracted 3 modules of rank 4 to 8, 1 tensor carried whole: 1.50 kB',
    'Merged back, 0.300 of the difference is left (largest single error 0.0625; worst module k_proj: 0.500)',
    'not finite when merged: v, NaN.',
    'A note.',
    'not carried: b0.bias, no room (norm of the change 0.500)',
    ...Array.from({ length: 11 }, (_, i) => `not carried: b${i + 1}.bias, no room`),
    'and 2 more; README.md names them all',
    'Written in 2.0 s on cpu (typed arrays): /out',
  ]);
});
