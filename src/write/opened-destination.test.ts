import { expect, test } from 'vitest';
import { treeHashOf } from '../../e2e/tree-hash';
import { parseHashes } from '../formats/output-hashes';
import { beginLeaves, TREE_PIECE_BYTES } from '../sources/tree-hash';
import type { Destination, FileSink } from './destination';
import { type MemoryDisk, memoryDisk } from './memory-destination.test.support';
import { checkedDestination } from './opened-destination';
import { commitOutput, writeWhole } from './output-commit';

const leavesOf = async (bytes: Uint8Array<ArrayBuffer>) => {
  const hasher = beginLeaves();
  await hasher.update(bytes);
  return hasher.leaves();
};
const bytesOf = (length: number, seed: number) =>
  Uint8Array.from({ length }, (_, i) => (i * 31 + seed) & 255);

/** Two pieces of the tree hash. */
const WHOLE = bytesOf(TREE_PIECE_BYTES + 500, 1);

/** A destination whose files are damaged in the moment in which `model.safetensors` is closed. */
function damaging(inner: Destination, damage: () => void): Destination {
  const damaged = (path: string, sink: FileSink): FileSink => ({
    ...sink,
    async close(leaves, length) {
      await sink.close(leaves, length);
      if (path === 'model.safetensors') damage();
    },
  });
  const { remains } = inner;
  return {
    ...inner,
    create: async (path) => damaged(path, await inner.create(path)),
    ...(remains && {
      remains: {
        ...remains,
        reopen: async (path, bytes) => damaged(path, await remains.reopen!(path, bytes)),
      },
    }),
  };
}

/** A shard in two writes and a small file. */
async function write(disk: MemoryDisk, damage: () => void = () => undefined): Promise<void> {
  const destination = checkedDestination(damaging(disk.open(true), damage));
  await writeWhole(destination, 'config.json', '{}');
  const shard = await destination.create('model.safetensors');
  const leaves = await leavesOf(WHOLE);
  for (const [from, to] of [
    [1000, WHOLE.length],
    [0, 1000],
  ]) {
    const piece = WHOLE.slice(from, to);
    await shard.write(piece, from!);
    // what becomes of an array that was handed over
    piece.fill(0);
  }
  await shard.close(leaves, WHOLE.length);
  await commitOutput(destination, { 'a/model.safetensors': 'abc' });
}

test('R55: a bit that turns in a closed file is found before the output is finished', async () => {
  for (const at of [0, 999, TREE_PIECE_BYTES - 1, TREE_PIECE_BYTES, WHOLE.length - 1]) {
    const disk = memoryDisk();
    const failed = write(disk, () => {
      disk.files.get('model.safetensors')!.rot(at);
    });
    const [begin, end] = at < TREE_PIECE_BYTES ? [0, TREE_PIECE_BYTES] : [TREE_PIECE_BYTES, WHOLE.length];
    await expect(failed).rejects.toMatchObject({
      code: 'IntegrityError',
      message: expect.stringContaining(
        `model.safetensors was not stored as it was written: bytes ${begin} to ${end} `,
      ),
    });
    expect(disk.isCommitted).toBe(false);
  }
});

test('R55: a file that became shorter or went away is found too', async () => {
  for (const damage of ['cut', 'removed']) {
    const disk = memoryDisk();
    const failed = write(disk, () => {
      const file = disk.files.get('model.safetensors')!;
      if (damage === 'cut') file.change({ size: file.size - 1 });
      else disk.files.delete('model.safetensors');
    });
    await expect(failed).rejects.toMatchObject({ code: 'IntegrityError' });
  }
});

test('the output carries the tree hashes of its files and those of what was read', async () => {
  const disk = memoryDisk();
  await write(disk);
  expect(disk.isCommitted).toBe(true);
  const text = new TextDecoder().decode(disk.files.get('amalgam-hashes.json')!.read());
  expect(parseHashes(text)).toEqual({
    inputs: { 'a/model.safetensors': 'abc' },
    outputs: Object.fromEntries(
      ['config.json', 'model.safetensors'].map((path) => [path, treeHashOf(disk.files.get(path)!.read())]),
    ),
  });
});

test('R55: of a file that was gone on with, the beginning counts too', async () => {
  const whole = bytesOf(300, 3);
  for (const turned of [undefined, 0, 99, 100]) {
    const disk = memoryDisk();
    const begun = await disk.open(true).create('model.safetensors');
    await begun.write(whole.slice(0, 100), 0);
    await begun.close([], 100);
    const destination = checkedDestination(
      damaging(disk.open(true), () => {
        if (turned !== undefined) disk.files.get('model.safetensors')!.rot(turned);
      }),
    );
    const rest = await destination.remains!.reopen!('model.safetensors', 100);
    await rest.write(whole.slice(100), 100);
    await rest.close(await leavesOf(whole), whole.length);
    await destination.remains!.adopt('model-1.safetensors', 3, 'abc');
    if (turned === undefined) {
      expect(Object.fromEntries(await destination.written!())).toEqual({
        'model-1.safetensors': 'abc',
        'model.safetensors': treeHashOf(whole),
      });
      await destination.commit();
    } else await expect(destination.commit()).rejects.toMatchObject({ code: 'IntegrityError' });
  }
});
