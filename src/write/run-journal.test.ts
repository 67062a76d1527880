import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type JournalEntry, journalLine, readJournal, type SafePoint } from './run-journal';

const begun: JournalEntry = {
  kind: 'begun',
  version: 3,
  recipe: 'merge_method: ties\n"naïve"',
  engine: 'cpu',
  adapter: 'typed arrays',
  startedAt: '2026-11-20T00:00:00.000Z',
};
const safePoint = (bytes: number): SafePoint => ({
  kind: 'checkpoint',
  file: 'model.safetensors',
  bytes,
  hash: `tree:${'a'.repeat(64)}`,
  whole: false,
  tensors: [],
});
const entries: JournalEntry[] = [
  begun,
  { kind: 'planned', headersSha256: 'b'.repeat(64), tensors: 4, bytes: 400 },
  safePoint(100),
  safePoint(200),
  { kind: 'resumed', checkpoints: 1 },
  safePoint(150),
];

async function written(): Promise<{ bytes: Uint8Array<ArrayBuffer>; ends: number[] }> {
  const lines = await Promise.all(entries.map(journalLine));
  const ends: number[] = [];
  for (const line of lines) ends.push((ends.at(-1) ?? 0) + line.length);
  return { bytes: Uint8Array.from(Buffer.concat(lines)), ends };
}

describe('the journal of a run', () => {
  test('reads back what was written; a resumed run voids the safe points it did not believe', async () => {
    const { bytes } = await written();
    const journal = await readJournal(bytes);
    expect(journal).toEqual({
      begun,
      planned: entries[1],
      safePoints: [safePoint(100), safePoint(150)],
      byteLength: bytes.length,
    });
  });

  test('R38: cut at any byte, what is left are the lines before the cut', async () => {
    const { bytes, ends } = await written();
    for (let cut = 0; cut <= bytes.length; cut++) {
      const journal = await readJournal(bytes.slice(0, cut));
      const whole = ends.filter((end) => end <= cut);
      expect(journal?.byteLength ?? 0).toBe(whole.at(-1) ?? 0);
    }
  });

  test('R38: with any byte altered, nothing from that line on is believed', async () => {
    const { bytes, ends } = await written();
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const damaged = bytes.slice();
        damaged[at]! ^= flip;
        const journal = await readJournal(damaged);
        expect(journal?.byteLength ?? 0).toBe(ends.filter((end) => end <= at).at(-1) ?? 0);
      }),
    );
  });

  test('another version, or no first line, is no journal', async () => {
    expect(await readJournal(new Uint8Array(0))).toBeUndefined();
    expect(await readJournal(await journalLine(entries[1]!))).toBeUndefined();
    for (const version of [1, 2, 4]) {
      const other = { ...begun, version } as unknown as JournalEntry;
      expect(await readJournal(await journalLine(other))).toBeUndefined();
    }
  });
});
