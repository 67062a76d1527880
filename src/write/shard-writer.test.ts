import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { treeHashOf } from '../../e2e/tree-hash';
import type { Destination } from './destination';
import type { ShardPlan } from './shard-plan';
import { ShardWriter } from './shard-writer';

const MIB = 2 ** 20;

/** A destination that records its bytes and the sizes of the writes. */
function memoryDestination(failAtWrite = Number.POSITIVE_INFINITY) {
  const files = new Map<string, { bytes: Uint8Array[]; isClosed: boolean }>();
  const writes: number[] = [];
  const destination: Destination = {
    async create(path) {
      const file = { bytes: [] as Uint8Array[], isClosed: false };
      files.set(path, file);
      return {
        async write(bytes) {
          if (writes.length + 1 === failAtWrite) throw new Error('disk on fire');
          writes.push(bytes.byteLength);
          file.bytes.push(bytes.slice());
        },
        async close() {
          file.isClosed = true;
        },
      };
    },
    commit: async () => {},
    discard: async () => {},
  };
  return { destination, files, writes };
}

function planOf(lengths: number[], headerBytes = 24): ShardPlan {
  return {
    file: 'model.safetensors',
    header: new Uint8Array(headerBytes).fill(7),
    tensors: lengths.map((byteLength, i) => ({
      name: `t${i}`,
      dtype: 'U8',
      shape: [byteLength],
      byteLength,
    })),
    byteLength: lengths.reduce((sum, n) => sum + n, headerBytes),
  };
}

describe('ShardWriter', () => {
  test('any cutting of the tensors gives the planned bytes and their tree hash', async () => {
    const lengths = fc.array(fc.nat(300), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(lengths, fc.integer({ min: 1, max: 64 }), async (sizes, piece) => {
        const { destination, files } = memoryDestination();
        const plan = planOf(sizes);
        const tensors = sizes.map((n, t) => Uint8Array.from({ length: n }, (_, i) => (i * 31 + t) & 255));
        const writer = await ShardWriter.open(destination, plan);
        const scratch = new Uint8Array(piece);
        for (const tensor of tensors) {
          for (let begin = 0; begin < tensor.length; begin += piece) {
            const part = scratch.subarray(0, Math.min(piece, tensor.length - begin));
            part.set(tensor.subarray(begin, begin + part.length));
            await writer.append(part);
          }
        }
        const shard = await writer.finish();
        const expected = Buffer.concat([plan.header, ...tensors]);
        const file = files.get('model.safetensors');
        expect(Buffer.concat(file?.bytes ?? [])).toEqual(expected);
        expect(file?.isClosed).toBe(true);
        expect(shard).toEqual({
          file: 'model.safetensors',
          bytes: expected.length,
          hash: treeHashOf(expected),
        });
      }),
    );
  });

  test('gathers appends into writes of at least 8 MiB', async () => {
    const { destination, writes, files } = memoryDestination();
    const writer = await ShardWriter.open(destination, planOf([20 * MIB, 20 * MIB, 5]));
    for (let i = 0; i < 4; i++) await writer.append(new Uint8Array(5 * MIB).fill(i));
    await writer.append(new Uint8Array(20 * MIB).fill(9));
    await writer.append(new Uint8Array(5).fill(10));
    await writer.finish();
    expect(writes.slice(0, -1).every((size) => size >= 8 * MIB)).toBe(true);
    const written = Buffer.concat(files.get('model.safetensors')?.bytes ?? []);
    const at = (mib: number) => written[24 + mib * MIB];
    expect([at(0), at(5), at(10), at(15), at(20), at(40)]).toEqual([0, 1, 2, 3, 9, 10]);
    expect(written.length).toBe(24 + 40 * MIB + 5);
  });

  test('refuses bytes that reach into the next tensor', async () => {
    const { destination, files } = memoryDestination();
    const writer = await ShardWriter.open(destination, planOf([4, 4]));
    await expect(writer.append(new Uint8Array(5))).rejects.toMatchObject({
      code: 'Internal',
      message: 't0 has 4 bytes by plan, but 5 came.',
    });
    await expect(writer.append(new Uint8Array(4))).rejects.toThrow('closed');
    expect(files.get('model.safetensors')?.isClosed).toBe(false);
  });

  test('refuses bytes after the last tensor and a shard that is too short', async () => {
    const full = await ShardWriter.open(memoryDestination().destination, planOf([2]));
    await full.append(new Uint8Array(2));
    await expect(full.append(new Uint8Array(1))).rejects.toThrow('is full');

    const { destination, files } = memoryDestination();
    const short = await ShardWriter.open(destination, planOf([2, 0, 3]));
    await short.append(new Uint8Array(2));
    await short.append(new Uint8Array(2));
    await expect(short.finish()).rejects.toThrow('t2 has 3 bytes by plan, but only 2 came.');
    expect(files.get('model.safetensors')?.isClosed).toBe(false);
  });

  test('a plan whose lengths do not add up creates no file', async () => {
    const { destination, files } = memoryDestination();
    await expect(ShardWriter.open(destination, { ...planOf([4]), byteLength: 29 })).rejects.toMatchObject({
      code: 'Internal',
    });
    expect(files.size).toBe(0);
  });

  test('two appends at once are refused instead of mixed', async () => {
    const writer = await ShardWriter.open(memoryDestination().destination, planOf([8]));
    const first = writer.append(new Uint8Array(4));
    await expect(writer.append(new Uint8Array(4))).rejects.toThrow('busy');
    await first;
  });

  test('a failed write closes the writer for good, and so does abort', async () => {
    const { destination } = memoryDestination(1);
    const writer = await ShardWriter.open(destination, planOf([9 * MIB]));
    await expect(writer.append(new Uint8Array(9 * MIB))).rejects.toThrow('disk on fire');
    await expect(writer.finish()).rejects.toThrow('closed');

    const aborted = await ShardWriter.open(memoryDestination().destination, planOf([1]));
    aborted.abort();
    aborted.abort();
    await expect(aborted.append(new Uint8Array(1))).rejects.toThrow('closed');
  });
});
