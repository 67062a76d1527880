import fc from 'fast-check';
import { expect, test } from 'vitest';
import { shareSources } from './shared-source';

const content = Uint8Array.from({ length: 300 }, (_, i) => i & 255);

function counted() {
  const times = new Uint32Array(content.length);
  const source = {
    byteLength: content.length,
    async read(begin: number, end: number) {
      for (let i = begin; i < end; i++) times[i]!++;
      return content.slice(begin, end);
    },
    close() {},
  };
  return { source, times };
}

const ranges = fc.array(
  fc.tuple(fc.nat(300), fc.nat(300)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const),
);

test('any reads, at the same time or not, give the file’s bytes, and no byte is read twice', async () => {
  await fc.assert(
    fc.asyncProperty(ranges, async (list) => {
      const { source, times } = counted();
      const shared = shareSources(1e9);
      const file = shared.share(source);
      const got = await Promise.all(list.map(([begin, end]) => file.read(begin, end)));
      expect(got).toEqual(list.map(([begin, end]) => content.slice(begin, end)));
      expect(Math.max(0, ...times)).toBeLessThanOrEqual(1);
      expect(shared.bytesRead).toBe(times.reduce((a, b) => a + b, 0));
      shared.forget();
      await file.read(0, 10);
      expect(times[0]).toBe(list.some(([begin, end]) => begin === 0 && end > 0) ? 2 : 1);
    }),
  );
});

test('what does not fit is read again, and right', async () => {
  const { source, times } = counted();
  const file = shareSources(150).share(source);
  await file.read(0, 100);
  await file.read(100, 200);
  expect(await file.read(50, 150)).toEqual(content.slice(50, 150));
  expect([times[60], times[120]]).toEqual([1, 2]);
});

test('a failed read can be tried again', async () => {
  const { source } = counted();
  let fails = true;
  const file = shareSources(1e9).share({
    ...source,
    read: async (begin, end) => {
      if (fails) throw new Error('cut');
      return source.read(begin, end);
    },
  });
  await expect(file.read(0, 9)).rejects.toThrow('cut');
  fails = false;
  expect(await file.read(0, 9)).toEqual(content.slice(0, 9));
});
