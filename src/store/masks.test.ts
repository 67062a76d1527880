import { beforeEach, describe, expect, test, vi } from 'vitest';
import { deleteMasks, listMasks, openRecords, type RecordHeader, recordBytes } from './masks';
import { contentOf, type FakeStorage, fakeStorage, rot } from './opfs.test.fake';

let storage: FakeStorage;
beforeEach(() => {
  storage = fakeStorage();
  vi.stubGlobal('navigator', storage.navigator);
});

interface Header extends RecordHeader {
  shape: number[];
  kept: number;
}

const header = { name: 'model.layers.0.q_proj.weight | ρ 0.2', shape: [2, 40], kept: 3 };
const mask = Uint8Array.from({ length: 16 }, (_, i) => i * 7);
const values = new Uint8Array(Float32Array.of(1, -2, 3).buffer);

/** Path of the only record in the storage. */
async function recordPath(): Promise<string> {
  const [folder] = await listMasks();
  const top = storage.root.entries.get('importance');
  const entry = top?.kind === 'directory' ? top.entries.get(folder!.id) : undefined;
  const names = entry?.kind === 'directory' ? [...entry.entries.keys()] : [];
  return `importance/${folder!.id}/${names.find((name) => name !== 'about.json')}`;
}

describe('records', () => {
  test('come back as they were written, by ranges of their sections', async () => {
    await (await openRecords('key', 'title')).write<Header>(header, [mask, values]);
    const found = (await (await openRecords('key', 'title')).find<Header>(header.name))!;
    expect(found.header).toEqual({ ...header, sections: [16, 12] });
    expect(await found.read(0, 3, 9)).toEqual(mask.slice(3, 9));
    expect(await found.read(1, 0, 12)).toEqual(values);
    await expect(found.read(1, 0, 13)).rejects.toMatchObject({ code: 'Internal' });
    expect(contentOf(storage, await recordPath())!.length).toBe(found.bytes);
  });

  test('are not found under another name or key', async () => {
    const folder = await openRecords('key', 'title');
    await folder.write<Header>(header, [mask]);
    expect(await folder.find('model.layers.0.q_proj.weight | ρ 0.3')).toBeUndefined();
    expect(await (await openRecords('other', 'title')).find(header.name)).toBeUndefined();
  });

  test('any flipped bit makes one missing', async () => {
    const folder = await openRecords('key', 'title');
    const { bytes } = await folder.write<Header>(header, [mask, values]);
    const path = await recordPath();
    for (let at = 0; at < bytes; at += 5) {
      rot(storage, path, at);
      expect(await folder.find(header.name), `byte ${at}`).toBeUndefined();
      rot(storage, path, at);
    }
    expect(await folder.find(header.name)).toBeDefined();
  });

  test.each(['lost', 'kept', 'torn'] as const)(
    'a power cut at any step leaves it whole or missing: %s',
    async (fate) => {
      for (let failAt = 1; ; failAt++) {
        storage = fakeStorage();
        vi.stubGlobal('navigator', storage.navigator);
        storage.failAt = failAt;
        const written = await openRecords('key', 'title')
          .then((folder) => folder.write<Header>(header, [mask, values]))
          .then(
            () => true,
            () => false,
          );
        // every other change meets the fate, so that orders are mixed
        storage.powerCut((change) => (change % 2 === 0 ? fate : 'kept'));
        const folder = await openRecords('key', 'title');
        const found = await folder.find<Header>(header.name);
        if (found) expect(await found.read(1, 0, 12)).toEqual(values);
        await folder.write<Header>(header, [mask, values]);
        expect(await folder.find(header.name)).toBeDefined();
        if (written) {
          expect(found).toBeDefined();
          return;
        }
      }
    },
  );

  test('no room is said, and what was begun counts as missing', async () => {
    const folder = await openRecords('key', 'title');
    storage.capacity = 100;
    await expect(folder.write<Header>(header, [mask, values])).rejects.toMatchObject({ code: 'StorageFull' });
    storage.capacity = Infinity;
    expect(await folder.find(header.name)).toBeUndefined();
  });
});

describe('the cache', () => {
  test('lists folders with their titles and sizes, and deletes them', async () => {
    const folder = await openRecords('key', 'kitchen, its own text');
    const { bytes } = await folder.write<Header>(header, [mask]);
    await openRecords('other', 'nothing yet');
    const listed = await listMasks();
    expect(listed).toContainEqual({ id: folder.id, title: 'kitchen, its own text', bytes, tensors: 1 });
    expect(listed).toHaveLength(2);
    await deleteMasks(folder.id);
    expect((await listMasks()).map((m) => m.title)).toEqual(['nothing yet']);
  });

  test('masks of a model of 0.5 B parameters take one bit per weight and less than 1 % more', () => {
    // the linear layers of Qwen2.5-0.5B: 24 blocks, hidden 896, 2 of 14 heads for keys and values, inner 4864
    const layers: [string, number, number][] = [
      ['self_attn.q_proj', 896, 896],
      ['self_attn.k_proj', 128, 896],
      ['self_attn.v_proj', 128, 896],
      ['self_attn.o_proj', 896, 896],
      ['mlp.gate_proj', 4864, 896],
      ['mlp.up_proj', 4864, 896],
      ['mlp.down_proj', 896, 4864],
    ];
    let bits = 0;
    let bytes = 0;
    for (let layer = 0; layer < 24; layer++) {
      for (const [module, rows, cols] of layers) {
        bits += rows * cols;
        const tensor = `model.layers.${layer}.${module}.weight`;
        const whole = {
          ...maskHeader(tensor, rows, cols),
          sections: [rows * Math.ceil(cols / 32) * 4],
        };
        bytes += recordBytes(whole);
      }
    }
    expect(bytes / (bits / 8)).toBeGreaterThan(1);
    expect(bytes / (bits / 8)).toBeLessThan(1.01);
  });
});

/** A header with everything a mask's has, at its longest. */
function maskHeader(tensor: string, rows: number, cols: number) {
  const hash = 'f'.repeat(64);
  return {
    name: `${tensor}|0.20000000000000001|sparsegpt|tensor|off`,
    tensor,
    shape: [rows, cols],
    density: 0.2,
    score: 'sparsegpt',
    scope: 'tensor',
    compensation: 'off',
    calibration: hash,
    model: hash,
    base: hash,
    kept: rows * cols,
    facts: { damping: 0.01, retries: 0, dead: 0, fellBackToDiagonal: false },
  };
}
