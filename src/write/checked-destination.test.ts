import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { checkedDestination } from './checked-destination';
import { current, type MemoryDisk, memoryDisk } from './memory-destination.test.support';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const bytesOf = (length: number, seed: number) =>
  Uint8Array.from({ length }, (_, i) => (i * 31 + seed) & 255);

/** A shard in two pieces and a small file; `damage` comes right after the shard was closed. */
async function write(disk: MemoryDisk, damage: () => void = () => undefined): Promise<void> {
  const destination = checkedDestination(disk.open(true));
  const config = await destination.create('config.json');
  await config.write(new TextEncoder().encode('{}'));
  await config.close();
  const shard = await destination.create('model.safetensors');
  const whole = new Uint8Array([...bytesOf(1000, 1), ...bytesOf(500, 2)]);
  for (const piece of [whole.slice(0, 1000), whole.slice(1000)]) {
    await shard.write(piece);
    // what becomes of an array that was handed over
    piece.fill(0);
  }
  await shard.close(sha256(whole));
  damage();
  await destination.commit();
}

test('R55: a bit that turns in a closed file is found before the output is finished', async () => {
  for (const at of [0, 999, 1000, 1499]) {
    const disk = memoryDisk();
    const failed = write(disk, () => {
      disk.files.get('model.safetensors')!.disk[at]! ^= 4;
    });
    const [begin, end] = at < 1000 ? [0, 1000] : [1000, 1500];
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
      if (damage === 'cut') file.disk = file.disk.slice(0, 1499);
      else disk.files.delete('model.safetensors');
    });
    await expect(failed).rejects.toMatchObject({ code: 'IntegrityError' });
  }
});

test('the output carries the sha256 of each of its files', async () => {
  const disk = memoryDisk();
  await write(disk);
  expect(disk.isCommitted).toBe(true);
  const text = new TextDecoder().decode(current(disk.files.get('SHA256SUMS')!));
  const expected = ['config.json', 'model.safetensors'].map(
    (path) => `${sha256(current(disk.files.get(path)!))}  ${path}\n`,
  );
  expect(text).toBe(expected.join(''));
});

test('R55: of a file that was gone on with, the beginning counts too', async () => {
  const whole = bytesOf(300, 3);
  for (const turned of [undefined, 0, 99, 100]) {
    const disk = memoryDisk();
    const begun = await disk.open(true).create('model.safetensors');
    await begun.write(whole.slice(0, 100));
    await begun.close();
    const destination = checkedDestination(disk.open(true));
    const rest = await destination.remains!.reopen!('model.safetensors', 100);
    await rest.write(whole.slice(100));
    await rest.close(sha256(whole));
    await destination.remains!.adopt('model-1.safetensors', 3, 'abc');
    if (turned !== undefined) disk.files.get('model.safetensors')!.disk[turned]! ^= 1;
    if (turned === undefined) {
      await destination.commit();
      const text = new TextDecoder().decode(current(disk.files.get('SHA256SUMS')!));
      expect(text).toBe(`abc  model-1.safetensors\n${sha256(whole)}  model.safetensors\n`);
    } else await expect(destination.commit()).rejects.toMatchObject({ code: 'IntegrityError' });
  }
});
