import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MEMORY_BYTES, memoryStorage } from './memory-storage';
import { openOpfsFile, readWhole, removeStored, storageFolder, writeWhole } from './opfs-file';

beforeEach(() => {
  // a private window of Firefox
  const getDirectory = () => Promise.reject(new DOMException('Security error', 'SecurityError'));
  vi.stubGlobal('navigator', { storage: { getDirectory } });
});
afterEach(() => void vi.unstubAllGlobals());

test('R36: where the browser keeps nothing, files are kept in memory', async () => {
  // a worker finds it out once
  vi.resetModules();
  const { ensureStorage } = await import('./memory-storage');
  expect(await ensureStorage()).toBe(MEMORY_BYTES);
  const folder = await (await storageFolder('outputs')).getDirectoryHandle('merged', { create: true });
  await writeWhole(folder, 'a', new TextEncoder().encode('kept'), 'a');
  expect(new TextDecoder().decode(await readWhole(folder, 'a', 'a'))).toBe('kept');
  await expect(folder.getDirectoryHandle('a')).rejects.toMatchObject({ name: 'TypeMismatchError' });
  await expect(folder.getFileHandle('b')).rejects.toMatchObject({ name: 'NotFoundError' });
  const outputs = await storageFolder('outputs');
  await expect(outputs.removeEntry('merged')).rejects.toMatchObject({ name: 'InvalidModificationError' });
  await removeStored(outputs, 'merged', 'merged');
  const names: string[] = [];
  for await (const [name] of outputs.entries()) names.push(name);
  expect(names).toEqual([]);
});

test('R36: more than fits is refused as a full storage is, and what is removed makes room', async () => {
  const root = memoryStorage(100);
  const file = await openOpfsFile(root, 'a', 'a.safetensors', 'create');
  file.resize(90);
  expect(() => file.writeAll(new Uint8Array(20), 85)).toThrow(
    expect.objectContaining({ code: 'StorageFull', message: expect.stringContaining('a.safetensors') }),
  );
  expect(file.size()).toBe(90);
  await root.removeEntry('a');
  const other = await openOpfsFile(root, 'b', 'b', 'create');
  other.writeAll(new Uint8Array(100), 0);
  expect(other.size()).toBe(100);
});

test('a file in memory is what a plain array would be', async () => {
  const MiB = 2 ** 20;
  const place = fc.integer({ min: 0, max: 2 * MiB + 5000 });
  const step = fc.oneof(
    fc.record({ at: place, length: fc.integer({ min: 1, max: 3000 }) }),
    fc.record({ size: place }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const root = memoryStorage(8 * MiB);
      const file = await openOpfsFile(root, 'a', 'a', 'create');
      let plain = new Uint8Array(0);
      for (const [k, change] of steps.entries()) {
        const size = 'size' in change ? change.size : Math.max(plain.length, change.at + change.length);
        const next = new Uint8Array(size);
        next.set(plain.subarray(0, size));
        plain = next;
        if ('size' in change) {
          file.resize(size);
        } else {
          const bytes = new Uint8Array(change.length).fill(k + 1);
          plain.set(bytes, change.at);
          file.writeAll(bytes, change.at);
        }
      }
      const whole = new Uint8Array(await (await (await root.getFileHandle('a')).getFile()).arrayBuffer());
      expect(Buffer.compare(whole, plain)).toBe(0);
      expect(Buffer.compare(file.read(0, plain.length), plain)).toBe(0);
    }),
    { numRuns: 40 },
  );
});
