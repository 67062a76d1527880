import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DTYPE_BITS, type Dtype } from './dtype';
import { headerLength, parseSafetensorsHeader } from './safetensors-header';
import { buildSafetensorsHeader, sortForFile } from './safetensors-write';

test.each(['public/samples/base/model.safetensors', 'public/samples/kitchen/adapter_model.safetensors'])(
  'the header of %s, written by the Python package, comes out byte for byte',
  (path) => {
    const bytes = readFileSync(path);
    const length = headerLength(bytes.subarray(0, 8), bytes.length);
    const { tensors, metadata } = parseSafetensorsHeader(bytes.subarray(8, 8 + length), bytes.length, path);
    const planned = [...tensors.values()].map((t) => ({ ...t, byteLength: t.end - t.begin })).reverse();
    const header = buildSafetensorsHeader(sortForFile(planned), Object.fromEntries(metadata));
    expect(Buffer.compare(header, bytes.subarray(0, 8 + length))).toBe(0);
  },
);

test('the example in the tests of the Rust crate', () => {
  // serialize() of {"attn0": F32 [1,1,2,3]}: 72 bytes of header, seven of them padding; ours adds the metadata.
  const header = buildSafetensorsHeader(
    [{ name: 'attn0', dtype: 'F32', shape: [1, 1, 2, 3], byteLength: 24 }],
    {},
  );
  const json =
    '{"__metadata__":{"format":"pt"},"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}';
  expect(new TextDecoder().decode(header.subarray(8))).toBe(json.padEnd(Math.ceil(json.length / 8) * 8));
  expect([...header.subarray(0, 8)]).toEqual([header.length - 8, 0, 0, 0, 0, 0, 0, 0]);
});

test('format is always pt', () => {
  expect(
    new TextDecoder().decode(buildSafetensorsHeader([], { format: 'tf', a: 'ü"\n' }).subarray(8)).trim(),
  ).toBe('{"__metadata__":{"format":"pt","a":"ü\\"\\n"}}');
});

test('what is written is read back', () => {
  const tensor = fc.record({
    name: fc.string({ unit: 'grapheme', maxLength: 12 }).filter((name) => !name.includes('\0')),
    dtype: fc.constantFrom(...(Object.keys(DTYPE_BITS) as Dtype[])),
    shape: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3 }).map((shape) => [...shape, 8]),
  });
  const tensors = fc.uniqueArray(tensor, { selector: (t) => t.name, maxLength: 8 });
  const metadata = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }));
  fc.assert(
    fc.property(tensors, metadata, (list, extra) => {
      const planned = list.map((t) => ({
        ...t,
        byteLength: t.shape.reduce((n, d) => n * d, DTYPE_BITS[t.dtype]) / 8,
      }));
      const sorted = sortForFile(planned);
      const header = buildSafetensorsHeader(sorted, extra);
      expect(header.length % 8).toBe(0);
      const fileLength = header.length + planned.reduce((n, t) => n + t.byteLength, 0);
      expect(headerLength(header.subarray(0, 8), fileLength)).toBe(header.length - 8);
      const read = parseSafetensorsHeader(header.subarray(8), fileLength, 'w');
      expect(new Map(Object.entries({ ...extra, format: 'pt' }))).toEqual(read.metadata);
      for (const t of planned) {
        const stored = read.tensors.get(t.name)!;
        expect({ dtype: stored.dtype, shape: stored.shape, byteLength: stored.end - stored.begin }).toEqual({
          dtype: t.dtype,
          shape: t.shape,
          byteLength: t.byteLength,
        });
        // Widest first: every tensor of whole bytes is aligned to its element.
        expect((stored.begin * 8) % Math.max(8, DTYPE_BITS[t.dtype])).toBe(0);
      }
    }),
  );
});

test('order: wide elements first, then by code points', () => {
  const names = sortForFile([
    { name: 'b', dtype: 'F16' },
    { name: 'z', dtype: 'F32' },
    { name: 'a', dtype: 'BF16' },
    { name: '😀', dtype: 'F32' },
    { name: '\uffee', dtype: 'F32' },
    { name: 'n', dtype: 'U8' },
    { name: 'i', dtype: 'I64' },
  ]).map((t) => t.name);
  expect(names).toEqual(['i', 'z', '\uffee', '😀', 'a', 'b', 'n']);
});

test.each([
  ['the reserved name', [{ name: '__metadata__', dtype: 'F32', shape: [], byteLength: 4 }], 'UnsafeName'],
  ['NUL', [{ name: 'a\0', dtype: 'F32', shape: [], byteLength: 4 }], 'UnsafeName'],
  ['a wrong length', [{ name: 'a', dtype: 'F32', shape: [2], byteLength: 4 }], 'ShapeMismatch'],
  ['a name twice', Array(2).fill({ name: 'a', dtype: 'F32', shape: [], byteLength: 4 }), 'DuplicateKey'],
] as const)('%s is refused', (_, tensors, code) => {
  expect(() => buildSafetensorsHeader(tensors, {})).toThrow(expect.objectContaining({ code }));
});

test('metadata with half a surrogate pair is refused', () => {
  expect(() => buildSafetensorsHeader([], { a: '\ud800' })).toThrow(
    expect.objectContaining({ code: 'UnsafeName' }),
  );
});
