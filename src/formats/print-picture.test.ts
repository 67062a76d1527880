import { inflateSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { pdfOf } from './print-picture';

test('a PDF has a page of the picture at 300 dpi, and its table of objects is right', async () => {
  const data = Uint8ClampedArray.from({ length: 6 * 5 * 4 }, (_, i) => (i * 37) % 256);
  const bytes = new Uint8Array(await (await pdfOf({ width: 6, height: 5, data })).arrayBuffer());
  const text = new TextDecoder('latin1').decode(bytes);
  expect(text).toContain('/MediaBox[0 0 1.44 1.2]');
  const table = Number(/startxref\n(\d+)/.exec(text)![1]);
  const offsets = [...text.slice(table).matchAll(/(\d{10}) 00000 n/g)].map(([, at]) => Number(at));
  expect(offsets.map((at) => text.slice(at, at + 7))).toEqual([1, 2, 3, 4, 5].map((n) => `${n} 0 obj`));
  const image = text.slice(offsets[4]);
  const begin = offsets[4]! + image.indexOf('stream\n') + 7;
  const length = Number(/Length (\d+)/.exec(image)![1]);
  expect([...inflateSync(bytes.subarray(begin, begin + length))]).toEqual(
    [...data].filter((_, i) => i % 4 < 3),
  );
});
