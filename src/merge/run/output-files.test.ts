import { expect, test } from 'vitest';
import type { OpenModels } from '../../host/models';
import type { Inputs } from '../../host/weight-inputs';
import { bufferSource } from '../../sources/buffer-source';
import type { ModelFile } from '../../sources/model-folder';
import { hashInputs } from './output-files';

const SHA256_OF_ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
const bytes = new TextEncoder().encode('abc');

test('R63: what the name of a file in another program’s cache says of its bytes is not just believed', async () => {
  const hash = (claim: Partial<ModelFile>) => {
    const file: ModelFile = { path: 'w', byteLength: 3, open: () => bufferSource(bytes, 'w'), ...claim };
    return hashInputs(
      [{ folder: 'org/m', file: 'w', byteLength: 3, readBytes: 3 }],
      { file: () => ({ file }) } as unknown as OpenModels,
      { source: () => file.open() } as unknown as Inputs,
      new AbortController().signal,
      { begin: () => {}, advance: () => {} },
    );
  };
  expect([...(await hash({})).values()]).toEqual([SHA256_OF_ABC]);
  expect([...(await hash({ claimedSha256: SHA256_OF_ABC })).values()]).toEqual([SHA256_OF_ABC]);
  await expect(hash({ claimedSha256: 'a'.repeat(64) })).rejects.toMatchObject({
    code: 'IntegrityError',
    message: expect.stringMatching(/org\/m.*w in the Hugging Face cache has other bytes than its name/),
  });
});
