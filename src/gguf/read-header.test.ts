/** Headers that cannot be, or would cost more than they are long. */
import { expect, test } from 'vitest';
import { type ByteSource, bufferSource } from '../sources/byte-source';
import { ggufHeader } from './header';
import { readGgufHeader } from './read-header';

/** Little-endian parts: `4:n` a u32, `8:n` a u64, else a text with its length. */
function bytesOf(...parts: (string | [4 | 8 | 1, number | bigint])[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(
    parts.flatMap((part) => {
      if (typeof part === 'string') {
        const text = new TextEncoder().encode(part);
        return [...bytesOf([8, text.length]), ...text];
      }
      const view = new DataView(new ArrayBuffer(8));
      view.setBigUint64(0, BigInt(part[1]), true);
      return [...new Uint8Array(view.buffer, 0, part[0])];
    }),
  );
}
type Part = Parameters<typeof bytesOf>[number];
const u32 = (n: number): Part => [4, n];
const u64 = (n: number | bigint): Part => [8, n];
const MAGIC = u32(0x46554747);
const begin = (tensors: number | bigint, keys: number | bigint, version = 3): Part[] => [
  ...[MAGIC, u32(version), u64(tensors), u64(keys)],
];
const tensor = (
  name: string,
  extents: (number | bigint)[],
  type = 0,
  offset: number | bigint = 0,
): Part[] => [...[name, u32(extents.length), ...extents.map(u64), u32(type), u64(offset)]];
const LIST = 9;
const HUGE = 2n ** 62n;

test.each<[string, Part[], string, RegExp]>([
  ['another file', [u32(0x04034b50), u32(3)], 'HeaderInvalid', /does not begin/],
  ['an early version', begin(0, 0, 1), 'HeaderInvalid', /version 1/],
  ['another order of bytes', begin(0, 0, 0x03000000), 'HeaderInvalid', /big-endian/],
  ['more tensors than there are', begin(HUGE, 0), 'HeaderInvalid', /length beyond/],
  ['many tensors', begin(2 ** 40, 0), 'HeaderInvalid', /tensors; at most/],
  ['many keys', begin(0, 2 ** 40), 'HeaderInvalid', /keys; at most/],
  ['no more bytes', begin(1, 0), 'HeaderTooSmall', /ends within its header/],
  [
    'a text that is longer than the file',
    [...begin(0, 1), 'a', u32(8), u64(2 ** 26)],
    'HeaderTooSmall',
    /ends/,
  ],
  ['a text beyond all files', [...begin(0, 1), 'a', u32(8), u64(2n ** 40n)], 'HeaderInvalid', /text of/],
  ['a list that is longer', [...begin(0, 1), 'a', u32(LIST), u32(0), u64(2 ** 22)], 'HeaderTooSmall', /ends/],
  ['a list beyond all', [...begin(0, 1), 'a', u32(LIST), u32(7), u64(2 ** 40)], 'HeaderInvalid', /lists/],
  ['a list of lists', [...begin(0, 1), 'a', u32(LIST), u32(LIST), u64(1)], 'HeaderInvalid', /unknown type 9/],
  ['a value of no type', [...begin(0, 1), 'a', u32(99)], 'HeaderInvalid', /unknown type 99/],
  ['a key twice', [...begin(0, 2), 'a', u32(7), [1, 1], 'a', u32(7), [1, 1]], 'DuplicateKey', /twice/],
  ['an odd alignment', [...begin(0, 1), 'general.alignment', u32(4), u32(0)], 'HeaderInvalid', /alignment/],
  ['many dimensions', [...begin(1, 0), 't', u32(9)], 'HeaderInvalid', /9 dimensions/],
  ['no elements', [...begin(1, 0), ...tensor('t', [0])], 'ShapeMismatch', /shape/],
  ['too many elements', [...begin(1, 0), ...tensor('t', [2 ** 40, 2 ** 40])], 'ShapeMismatch', /shape/],
  ['rows that no blocks fit', [...begin(1, 0), ...tensor('t', [33], 8)], 'ShapeMismatch', /Q8_0/],
  ['beyond the end', [...begin(1, 0), ...tensor('t', [64])], 'FileSizeMismatch', /would end at/],
  ['an offset beyond', [...begin(1, 0), ...tensor('t', [1], 0, 2 ** 50)], 'FileSizeMismatch', /would end at/],
  ['an offset between', [...begin(1, 0), ...tensor('t', [1], 0, 4)], 'InvalidOffset', /aligned/],
  ['one over the other', [...begin(2, 0), ...tensor('a', [1]), ...tensor('b', [1])], 'InvalidOffset', /over/],
  [
    'one name twice',
    [...begin(2, 0), ...tensor('a', [1]), ...tensor('a', [1], 0, 32)],
    'DuplicateKey',
    /name/,
  ],
  ['a type that is not read', [...begin(1, 0), ...tensor('t', [256], 16)], 'GgufUnsupported', /IQ2_XXS/],
  ['a type that nobody knows', [...begin(1, 0), ...tensor('t', [256], 77)], 'GgufUnsupported', /type 77/],
])('%s', async (_, parts, code, message) => {
  const header = bytesOf(...parts);
  // room for two small tensors behind
  const room = code === 'HeaderTooSmall' ? 0 : 128;
  const bytes = new Uint8Array(header.length + room);
  bytes.set(header);
  await expect(readGgufHeader(bufferSource(bytes), 'm.gguf')).rejects.toMatchObject({
    ...{ code, message: expect.stringMatching(message), hint: expect.any(String) },
  });
});

test('of a large file no more is read than its header takes', async () => {
  const tokens = Array.from({ length: 100_000 }, (_, i) => `token ${i}`);
  const bytes = ggufHeader(
    new Map([['tokenizer.ggml.tokens', { type: 'array', of: 'text', values: tokens }]]),
    [{ name: 't', shape: [2 ** 20, 1024], type: 'F32', byteLength: 2 ** 32 }],
  );
  const read: number[] = [];
  const source: ByteSource = {
    byteLength: bytes.length + 2 ** 32,
    async read(from, to) {
      read.push(to - from);
      const piece = new Uint8Array(to - from);
      piece.set(bytes.subarray(from, Math.min(to, bytes.length)));
      return piece;
    },
  };
  const { metadata, tensors } = await readGgufHeader(source, 'm.gguf');
  expect(metadata.get('tokenizer.ggml.tokens')).toEqual(tokens);
  expect(tensors).toEqual([
    { name: 't', type: 0, shape: [2 ** 20, 1024], begin: bytes.length, end: bytes.length + 2 ** 32 },
  ]);
  expect(read.reduce((a, b) => a + b)).toBeLessThan(4 * bytes.length);
});
