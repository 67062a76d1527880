import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { treeHashOf } from '../../e2e/tree-hash';
import { bufferSource } from '../sources/byte-source';
import type { ModelFile } from '../sources/model-folder';
import type { OpenModels } from './models';
import { openHashedInputs } from './weight-inputs';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const bytes = Uint8Array.from({ length: 5_000_000 }, (_, i) => (i * 31 + (i >> 9)) & 255);
const NAME = 'org/m/w';

function openOne(about: Partial<ModelFile>, options?: Parameters<typeof openHashedInputs>[5]) {
  let read = 0;
  const begun: number[] = [];
  const source = bufferSource(bytes, 'w');
  const file: ModelFile = {
    path: 'w',
    byteLength: bytes.length,
    open: () => ({
      ...source,
      read: (begin, end) => {
        read += end - begin;
        return source.read(begin, end);
      },
    }),
    ...about,
  };
  const folder = { path: 'org/m', origin: { kind: 'local' }, files: [file] } as const;
  const meter = { begin: (length: number) => begun.push(length), advance: () => {} };
  const opened = openHashedInputs(
    { inputs: [{ folder: 'org/m', file: 'w', byteLength: bytes.length }] },
    { file: () => ({ folder, file }) } as unknown as OpenModels,
    new AbortController().signal,
    () => {},
    meter,
    options,
  );
  return { opened, meter, begun, bytesRead: () => read };
}

test('the hash of a local file is found while it is read; what nobody reads is read at the end', async () => {
  const { opened, meter, begun, bytesRead } = openOne({});
  const inputs = await opened;
  expect([...inputs.known]).toEqual([]);
  expect(await inputs.source(NAME).read(100, 3_000_000)).toEqual(bytes.slice(100, 3_000_000));
  expect([...(await inputs.pieces()).get(NAME)!.keys()]).toEqual([0, 1]);
  expect([...(await inputs.hashAll(meter))]).toEqual([[NAME, treeHashOf(bytes)]]);
  expect(bytesRead()).toBe(bytes.length);
  expect(begun).toEqual([bytes.length - 2 * 2 ** 21]);
});

test('R63: what the name of a file in another program’s cache says of its bytes is not just believed', async () => {
  expect([...(await openOne({ claimedSha256: sha256(bytes) }).opened).known]).toEqual([
    [NAME, sha256(bytes)],
  ]);
  await expect(openOne({ claimedSha256: 'a'.repeat(64) }).opened).rejects.toMatchObject({
    code: 'IntegrityError',
    message: expect.stringMatching(/org\/m.*w in the Hugging Face cache has other bytes than its name/),
  });
});

test('hashes that are known are not made again', async () => {
  const { opened, meter, bytesRead } = openOne({}, new Map([[NAME, 'tree:ab']]));
  expect([...(await (await opened).hashAll(meter))]).toEqual([[NAME, 'tree:ab']]);
  expect(bytesRead()).toBe(0);
});
