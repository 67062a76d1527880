import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type BlobRecord,
  bytesPresent,
  digestOffset,
  emptyRecord,
  formatRecord,
  parseRecord,
  pieceRange,
} from './blob-record';

const SHA = 'ab'.repeat(32);

const record = fc
  .record({
    byteLength: fc.nat(300),
    pieceBytes: fc.integer({ min: 1, max: 100 }),
    name: fc.string({ unit: 'grapheme' }),
    present: fc.array(fc.boolean()),
  })
  .map(({ byteLength, pieceBytes, name, present }): BlobRecord => {
    const empty = emptyRecord(SHA, byteLength, name, pieceBytes);
    const digest = (i: number) => i.toString(16).padStart(32, 'a');
    return { ...empty, pieces: empty.pieces.map((_, i) => (present[i] ? digest(i) : null)) };
  });

test('a record survives its own writing, and its length does not depend on what is present', () => {
  fc.assert(
    fc.property(record, (r) => {
      expect(parseRecord(formatRecord(r), SHA)).toEqual(r);
      const empty = emptyRecord(SHA, r.byteLength, r.name, r.pieceBytes);
      expect(formatRecord(r)).toHaveLength(formatRecord(empty).length);
    }),
  );
});

test('a digest written where it belongs makes the record that has it', () => {
  fc.assert(
    fc.property(record, fc.nat(), (r, n) => {
      if (r.pieces.length === 0) return;
      const index = n % r.pieces.length;
      const digest = index.toString(16).padStart(32, 'b');
      const bytes = formatRecord(r);
      bytes.set(new TextEncoder().encode(digest), digestOffset(r, index, bytes.length));
      expect(parseRecord(bytes, SHA)).toEqual({ ...r, pieces: r.pieces.with(index, digest) });
    }),
  );
});

test('a write torn anywhere leaves nothing, or digests that are all true', () => {
  const before = { ...emptyRecord(SHA, 400, 'x', 100), pieces: ['1'.repeat(32), null, null, null] };
  const after = { ...before, pieces: ['1'.repeat(32), null, '3'.repeat(32), null] };
  const [a, b] = [formatRecord(before), formatRecord(after)];
  for (let at = 0; at <= a.length; at++) {
    for (const torn of [
      [b.slice(0, at), a.slice(at)],
      [a.slice(0, at), b.slice(at)],
    ]) {
      const bytes = Uint8Array.from(torn.flatMap((part) => [...part]));
      const found = parseRecord(bytes, SHA);
      for (const [i, value] of (found?.pieces ?? []).entries())
        expect([null, after.pieces[i]]).toContain(value);
    }
    expect(parseRecord(b.slice(0, at), SHA) === undefined).toBe(at < b.length);
  }
});

test.each([
  ['nothing', ''],
  ['no JSON', '{'],
  ['another blob', JSON.stringify({ ...valid(), sha256: 'cd'.repeat(32) })],
  ['another version', JSON.stringify({ ...valid(), version: 1 })],
  ['too few pieces', JSON.stringify({ ...valid(), pieces: [] })],
  ['a piece size of zero', JSON.stringify({ ...valid(), pieceBytes: 0 })],
  ['a length that is no number', JSON.stringify({ ...valid(), byteLength: '100' })],
])('%s is no record', (_, text) => {
  expect(parseRecord(new TextEncoder().encode(text), SHA)).toBeUndefined();
});

test('pieces cover the blob without gap or overlap', () => {
  fc.assert(
    fc.property(record, (r) => {
      let at = 0;
      let present = 0;
      for (const [i, value] of r.pieces.entries()) {
        const { begin, end } = pieceRange(r, i);
        expect(begin).toBe(at);
        expect(end).toBeGreaterThan(begin);
        if (value !== null) present += end - begin;
        at = end;
      }
      expect(at).toBe(r.byteLength);
      expect(bytesPresent(r)).toBe(present);
    }),
  );
});

function valid(): object {
  return { version: 2, sha256: SHA, byteLength: 100, name: 'x', pieceBytes: 100, pieces: ['.'.repeat(32)] };
}
