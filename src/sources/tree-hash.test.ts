import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { oldTreeHashOf, treeHashOf } from '../../e2e/tree-hash';
import { type ByteSource, bufferSource } from './byte-source';
import { sha256Of } from './sha256';
import { beginLeaves, hashedSource, hashLike, TREE_PIECE_BYTES, treeHash, treeOf } from './tree-hash';

const content = (length: number) => Uint8Array.from({ length }, (_, i) => (i * 37 + (i >> 11)) & 255);
const LONG = content(2 * TREE_PIECE_BYTES + 12_345);

test('bytes that come in any parts have the hash of the whole, and so has every beginning', async () => {
  const cuts = fc.array(fc.integer({ min: 0, max: LONG.length }), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(cuts, async (places) => {
      const hasher = beginLeaves();
      let at = 0;
      for (const to of [...places.sort((a, b) => a - b), LONG.length]) {
        const part = LONG.slice(at, to);
        const before = hasher.copy();
        await hasher.update(part);
        await before.update(part);
        // what becomes of an array that was handed over
        part.fill(0);
        at = to;
        for (const one of [hasher, before])
          expect(await treeHash(await one.leaves())).toBe(treeHashOf(LONG.subarray(0, at)));
      }
    }),
    { numRuns: 12 },
  );
});

test('files without bytes, of one piece and of several; hashes of before, and plain ones, are made as they are', async () => {
  for (const length of [0, 1, TREE_PIECE_BYTES / 8, TREE_PIECE_BYTES, TREE_PIECE_BYTES + 1, LONG.length]) {
    const source = bufferSource(LONG.slice(0, length));
    const old = oldTreeHashOf(LONG.subarray(0, length));
    expect(await treeOf(source)).toBe(treeHashOf(LONG.subarray(0, length)));
    expect(await hashLike('tree2:', source)).toBe(await treeOf(source));
    expect(await hashLike(old, source)).toBe(old);
  }
  const abc = bufferSource(new TextEncoder().encode('abc'));
  expect(await hashLike('0'.repeat(64), abc)).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  );
});

test('a source hashed while it is read gives the bytes as they are, in any order, waiting or not, and reads little twice', async () => {
  let read = 0;
  const counting: ByteSource = {
    ...bufferSource(LONG),
    async read(begin, end) {
      read += end - begin;
      return LONG.slice(begin, end);
    },
    readNow(begin, end, into) {
      read += end - begin;
      into.set(LONG.subarray(begin, end));
      return true;
    },
  };
  const range = fc.tuple(fc.nat(LONG.length), fc.nat(LONG.length), fc.boolean());
  const ranges = fc.array(range, { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(ranges, fc.boolean(), async (wanted, atOnce) => {
      const source = hashedSource(counting);
      const take = async ([a, b, waits]: [number, number, boolean]) => {
        const [begin, end] = [Math.min(a, b), Math.max(a, b)];
        const memory = new Uint8Array(end - begin);
        const came = !waits && source.readNow!(begin, end, memory);
        const bytes = came ? memory.slice() : await source.read(begin, end);
        // what it was read into becomes something else
        memory.fill(0);
        expect(Buffer.compare(bytes, LONG.subarray(begin, end))).toBe(0);
      };
      if (atOnce) await Promise.all(wanted.map(take));
      else for (const one of wanted) await take(one);
      expect(await source.tree()).toBe(treeHashOf(LONG));
    }),
    { numRuns: 30 },
  );
  read = 0;
  const source = hashedSource(counting);
  const memory = new Uint8Array(TREE_PIECE_BYTES / 2 + 7);
  for (let at = 5; at < LONG.length; at += memory.length) {
    const end = Math.min(LONG.length, at + memory.length);
    expect(source.readNow!(at, end, memory.subarray(0, end - at))).toBe(true);
  }
  expect(await source.tree()).toBe(treeHashOf(LONG));
  expect(read).toBe(LONG.length);
});

test('a byte that is used is one that was hashed: a read that fails is no piece, and works when it is tried again', async () => {
  let fails = true;
  const whole = bufferSource(LONG);
  const source: ByteSource = {
    ...whole,
    read: (begin, end) => (fails ? Promise.reject(new Error('unplugged')) : whole.read(begin, end)),
  };
  const hashed = hashedSource(source);
  await expect(Promise.all([hashed.read(0, 10), hashed.read(5, LONG.length)])).rejects.toThrow('unplugged');
  expect((await hashed.leaves()).size).toBe(0);
  fails = false;
  expect(await hashed.read(5, 10)).toEqual(LONG.slice(5, 10));
  expect([...(await hashed.leaves()).keys()]).toEqual([0]);
  expect(await hashed.tree()).toBe(treeHashOf(LONG));
});

it.each([0, 1, 8 * 1024 * 1024, 8 * 1024 * 1024 + 1, 20_000_000])(
  '%i bytes hash as Node hashes them',
  async (n) => {
    const bytes = new Uint8Array(n);
    for (let i = 0; i < n; i++) bytes[i] = (i * 31) ^ (i >> 7);
    let seen = 0;
    const hash = await sha256Of(bufferSource(bytes), undefined, (more) => {
      seen += more;
    });
    expect(hash).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect(seen).toBe(n);
  },
);

test('the hash of a piece that was told before all of it was used holds for what is used later', async () => {
  const changing = LONG.slice();
  const hashed = hashedSource(bufferSource(changing));
  await hashed.read(0, 10);
  await (await hashed.leaves()).get(0);
  changing[TREE_PIECE_BYTES - 1]! ^= 1;
  await hashed.read(10, LONG.length);
  await expect((await hashed.leaves()).get(0)).rejects.toMatchObject({ code: 'RunChanged' });
  await expect(hashed.tree()).rejects.toMatchObject({ code: 'RunChanged' });
});
