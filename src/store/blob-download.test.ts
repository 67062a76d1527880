import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import type { ByteSource } from '../sources/byte-source';
import type { DownloadSizes } from './blob-record';
import { ensureBlob, openBlob } from './blobs';
import { type FakeStorage, fakeStorage } from './opfs.test.fake';

const SIZE = 7013;
const SIZES = { piece: 100, request: 800 };
/** A journal keeps pieces that were whole requests. */
const WHOLE = { piece: 800, request: 800 };
const content = Uint8Array.from({ length: SIZE }, (_, i) => (i * 7 + (i >> 8)) & 0xff);
const SHA = createHash('sha256').update(content).digest('hex');

/** State of a source over its lives, and the byte at which this life ends. */
interface Line {
  /** Bytes given so far, by all requests. */
  given: number;
  killAt: number;
  /** Sizes of chunks, one after the other, over and over. */
  chunks: number[];
  requests: [begin: number, end: number][];
}

/** Streams in the chunks of the line. At the byte where it is killed the storage takes nothing more. */
function streaming(line: Line, storage: FakeStorage): ByteSource {
  let next = 0;
  return {
    byteLength: SIZE,
    read: () => Promise.reject(new Error('it streams')),
    async stream(begin, end, sink, signal) {
      line.requests.push([begin, end]);
      for (let at = begin; at < end; ) {
        await new Promise((resolve) => setImmediate(resolve));
        signal?.throwIfAborted();
        const length = Math.min(
          end - at,
          line.killAt - line.given,
          line.chunks[next++ % line.chunks.length]!,
        );
        if (length === 0) {
          storage.failAt = storage.steps;
          throw new Error('killed');
        }
        line.given += length;
        sink.take(content.slice(at, at + length));
        at += length;
      }
    },
  };
}

/** Downloads with a life for each kill, and a last one that is left alone. @returns bytes given and asked for */
async function downloadOver(
  kills: readonly { after: number; fates: readonly ('kept' | 'lost' | 'torn')[] }[],
  chunks: number[],
  firstSizes: DownloadSizes = SIZES,
): Promise<Line> {
  const storage = fakeStorage();
  vi.stubGlobal('navigator', storage.navigator);
  const line: Line = { given: 0, killAt: 0, chunks, requests: [] };
  const live = (sizes: DownloadSizes) =>
    ensureBlob({ sha256: SHA, byteLength: SIZE, name: 'w.bin', source: streaming(line, storage) }, {}, sizes);
  for (const [life, { after, fates }] of kills.entries()) {
    line.killAt = line.given + after;
    await live(life === 0 ? firstSizes : SIZES).catch(() => undefined);
    storage.powerCut((change) => fates[change % fates.length]!);
  }
  line.killAt = Infinity;
  await live(SIZES);
  const blob = await openBlob(SHA);
  expect(await blob.read(0, SIZE)).toEqual(content);
  blob.close();
  return line;
}

const chunks = fc.array(fc.integer({ min: 1, max: SIZES.piece }), { minLength: 1, maxLength: 20 });

test('a request covers as many pieces as it may, and asks for each once', async () => {
  const { requests, given } = await downloadOver([], [33]);
  expect(given).toBe(SIZE);
  expect(requests.sort(([a], [b]) => a - b)).toEqual(
    Array.from({ length: 9 }, (_, i) => [i * 800, Math.min(SIZE, (i + 1) * 800)]),
  );
});

test('R25 R47: a kill at any byte costs at most the pieces under way', async () => {
  const kill = fc.record({ after: fc.nat(SIZE), fates: fc.constant(['kept' as const]) });
  await fc.assert(
    fc.asyncProperty(fc.array(kill, { maxLength: 4 }), chunks, async (kills, sizes) => {
      const { given } = await downloadOver(kills, sizes);
      expect(given - SIZE).toBeLessThanOrEqual(kills.length * 3 * SIZES.piece);
    }),
    { numRuns: 50 },
  );
});

test('R25 R38: a power cut at any byte costs at most one request’s length, over all requests together', async () => {
  const fates = fc.array(fc.constantFrom('kept' as const, 'lost' as const, 'torn' as const), {
    minLength: 1,
    maxLength: 5,
  });
  const cuts = fc.array(fc.record({ after: fc.nat(SIZE), fates }), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(cuts, chunks, fc.constantFrom(SIZES, WHOLE), async (kills, sizes, first) => {
      const { given } = await downloadOver(kills, sizes, first);
      expect(given - SIZE).toBeLessThanOrEqual(kills.length * SIZES.request);
    }),
    { numRuns: 100 },
  );
});
