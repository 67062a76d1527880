import { expect, test } from 'vitest';
import type { CompareReport } from './report';
import { compareText } from './words';

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
