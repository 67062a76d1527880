import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { treeHashOf } from '../../e2e/tree-hash';
import { TREE_PIECE_BYTES } from '../sources/tree-hash';
import type { Destination } from './destination';
import type { ShardPlan } from './shard-plan';
import { type FilePart, joinParts, partWriter, ShardWriter } from './shard-writer';

const MIB = 2 ** 20;

/** A destination that records its bytes and the sizes of the writes. */
function memoryDestination(failAtWrite = Number.POSITIVE_INFINITY) {
  const files = new Map<string, { bytes: Uint8Array; isClosed: boolean }>();
  const writes: number[] = [];
  const destination: Destination = {
    async create(path) {
      const file = { bytes: new Uint8Array(0), isClosed: false };
      files.set(path, file);
      return {
        async write(bytes, at) {
          if (writes.length + 1 === failAtWrite) throw new Error('disk on fire');
          writes.push(bytes.byteLength);
          const end = Math.max(file.bytes.length, at + bytes.length);
          if (end > file.bytes.buffer.byteLength) {
            const grown = new Uint8Array(2 * end);
            grown.set(file.bytes);
            file.bytes = grown;
          }
          file.bytes = new Uint8Array(file.bytes.buffer, 0, end);
          file.bytes.set(bytes, at);
        },
        async close(_, length) {
          expect(length).toBe(file.bytes.length);
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

/** Writes bytes at a place of the file in appends of `piece`, as a thread does. */
async function written(writer: ShardWriter, at: number, bytes: Uint8Array, piece = MIB): Promise<FilePart> {
  const part = partWriter(at, (data, place) => writer.write(data, place));
  const scratch = new Uint8Array(piece);
  for (let begin = 0; begin < bytes.length; begin += piece) {
    const next = scratch.subarray(0, Math.min(piece, bytes.length - begin));
    next.set(bytes.subarray(begin, begin + next.length));
    await part.append(next);
  }
  return part.finish();
}

describe('ShardWriter', () => {
  test('tensors written in any order, in any parts, give the planned bytes and their tree hash', async () => {
    const near = fc.integer({ min: TREE_PIECE_BYTES - 40, max: TREE_PIECE_BYTES + 40 });
    const lengths = fc.array(fc.oneof(fc.nat(300), near), { maxLength: 5 });
    const pattern = new Uint8Array(TREE_PIECE_BYTES + 300).map((_, i) => i * 31);
    const cut = fc.oneof(fc.integer({ min: 1000, max: 3000 }), near);
    await fc.assert(
      fc.asyncProperty(
        lengths,
        cut,
        fc.integer({ min: 1, max: 3 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 3 }),
        async (sizes, piece, of, turned, together) => {
          const { destination, files } = memoryDestination();
          const plan = planOf(sizes);
          const tensors = sizes.map((n, t) => pattern.subarray(t, t + n));
          const expected = Buffer.concat([plan.header, ...tensors]);
          const writer = await ShardWriter.open(destination, plan);
          // units of so many tensors each, written from the last one on or from the first
          const units: { at: number; bytes: Uint8Array; count: number; part?: FilePart }[] = [];
          let at = plan.header.length;
          for (let first = 0; first < tensors.length; first += of) {
            const bytes = Buffer.concat(tensors.slice(first, first + of));
            units.push({ at, bytes, count: tensors.slice(first, first + of).length });
            at += bytes.length;
          }
          for (const unit of turned ? units.toReversed() : units)
            unit.part = await written(writer, unit.at, unit.bytes, piece);
          for (let first = 0; first < units.length; first += together) {
            const some = units.slice(first, first + together);
            const tensors = some.reduce((sum, { count }) => sum + count, 0);
            await writer.take(await joinParts(some.map(({ part }) => part!)), tensors);
          }
          const shard = await writer.finish();
          const file = files.get('model.safetensors');
          expect(Buffer.compare(file!.bytes, expected)).toBe(0);
          expect(file?.isClosed).toBe(true);
          expect(shard).toEqual({
            file: 'model.safetensors',
            bytes: expected.length,
            hash: treeHashOf(expected),
          });
        },
      ),
      { numRuns: 25 },
    );
  });

  test('gathers what is small into writes of pieces', async () => {
    const { destination, writes } = memoryDestination();
    const plan = planOf(Array.from({ length: 500 }, () => 20_000));
    const writer = await ShardWriter.open(destination, plan);
    const bytes = new Uint8Array(500 * 20_000);
    await writer.take(await written(writer, writer.written, bytes, 20_000), 500);
    await writer.finish();
    expect(writes.length).toBe(1 + Math.ceil(plan.byteLength / TREE_PIECE_BYTES));
  });

  test('refuses parts that are not what the plan says, and more tensors than it has', async () => {
    const { destination, files } = memoryDestination();
    const writer = await ShardWriter.open(destination, planOf([4, 4]));
    await expect(writer.take(await written(writer, 24, new Uint8Array(5)), 1)).rejects.toMatchObject({
      code: 'Internal',
      message: 't0 have 4 bytes by plan, but 5 came.',
    });
    await expect(writer.write(new Uint8Array(4), 24)).rejects.toThrow('closed');
    expect(files.get('model.safetensors')?.isClosed).toBe(false);

    const full = await ShardWriter.open(memoryDestination().destination, planOf([2]));
    const part = await written(full, 24, new Uint8Array(2));
    await full.take(part, 1);
    await expect(full.take(part, 1)).rejects.toThrow('is full');
  });

  test('refuses to finish a shard that is too short; what has no bytes need not come', async () => {
    const { destination, files } = memoryDestination();
    const short = await ShardWriter.open(destination, planOf([2, 0, 3]));
    await short.take(await written(short, 24, new Uint8Array(2)), 1);
    await expect(short.finish()).rejects.toThrow('t2 has not come.');
    expect(files.get('model.safetensors')?.isClosed).toBe(false);
    const whole = await ShardWriter.open(memoryDestination().destination, planOf([0, 0]));
    expect((await whole.finish()).bytes).toBe(24);
  });

  test('a plan whose lengths do not add up creates no file', async () => {
    const { destination, files } = memoryDestination();
    await expect(ShardWriter.open(destination, { ...planOf([4]), byteLength: 29 })).rejects.toMatchObject({
      code: 'Internal',
    });
    expect(files.size).toBe(0);
  });

  test('two calls at once are refused instead of mixed', async () => {
    const writer = await ShardWriter.open(memoryDestination().destination, planOf([8]));
    const part = await written(writer, 24, new Uint8Array(8));
    const first = writer.take(part, 1);
    await expect(writer.safePoint()).rejects.toThrow('busy');
    await first;
  });

  test('a failed write is thrown, and abort closes the writer for good', async () => {
    const { destination } = memoryDestination(2);
    const writer = await ShardWriter.open(destination, planOf([9 * MIB]));
    await expect(written(writer, 24, new Uint8Array(9 * MIB))).rejects.toThrow('disk on fire');
    writer.abort();
    writer.abort();
    await expect(writer.finish()).rejects.toThrow('closed');
    await expect(writer.write(new Uint8Array(1), 24)).rejects.toThrow('closed');
  });
});
