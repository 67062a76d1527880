import { expect, test } from 'vitest';
import { progressPrinter } from './print';

test('R54: a stage or tensor with terminal escapes in its name moves nothing on the terminal', () => {
  let printed = '';
  const printer = progressPrinter({ isTTY: true, columns: 200, write: (text) => (printed += text) });
  printer.print({
    phase: 'merging \u001b[31m' as 'merging',
    item: 'a\u001b]0;title\u0007\r',
    tensorsDone: 1,
    tensors: 2,
    bytesDone: 0,
    bytes: 0,
    bytesPerSecond: 0,
    secondsLeft: null,
    stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
  });
  expect(printed).toBe('\r\u001b[Kmerging \\u{1b}[31m · 1/2 tensors · a\\u{1b}]0;title\\u{7}\\u{d}');
});
